// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "tutti/core/error.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::profiler {

namespace {

using phase::Kind;

constexpr int kCategories = 4;
constexpr const char* kCategoryNames[kCategories] = {"data", "compute", "exposed communication", "other"};
constexpr Bottleneck kBottlenecks[kCategories] = {Bottleneck::kData, Bottleneck::kCompute,
                                                  Bottleneck::kCommunication, Bottleneck::kOther};

double share_of(const Verdict& verdict, Kind kind) { return verdict.share[static_cast<std::size_t>(kind)]; }

// In the order of kCategoryNames.
std::array<double, kCategories> categories(const Verdict& verdict) {
  return {share_of(verdict, Kind::kDataWait),
          share_of(verdict, Kind::kForward) + share_of(verdict, Kind::kBackward) +
              share_of(verdict, Kind::kOptimizer),
          share_of(verdict, Kind::kExposedCommunication), share_of(verdict, Kind::kOther)};
}

// Whole per cents that sum to 100: rounded down, and the largest remainders up.
std::array<int, kCategories> whole_percents(const std::array<double, kCategories>& shares) {
  std::array<int, kCategories> percents{};
  std::array<int, kCategories> order{};
  int left = 100;
  for (int i = 0; i < kCategories; ++i) {
    const auto at = static_cast<std::size_t>(i);
    percents[at] = static_cast<int>(shares[at] * 100);
    order[at] = i;
    left -= percents[at];
  }
  const auto remainder = [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    return shares[at] * 100 - percents[at];
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return remainder(a) > remainder(b); });
  for (std::size_t i = 0; i < order.size() && left > 0; ++i, --left)
    ++percents[static_cast<std::size_t>(order[i])];
  return percents;
}

double percent(double share) { return std::round(share * 100); }

std::string explanation(const Verdict& verdict) {
  const auto ms = [&](double share) { return share * verdict.step_ms; };
  switch (verdict.bottleneck) {
    case Bottleneck::kData:
      return fmt::format("data-bound: {:.1f} ms of each step are spent waiting for a batch",
                         ms(share_of(verdict, Kind::kDataWait)));
    case Bottleneck::kCommunication: {
      std::string text = fmt::format(
          "communication-bound: {:.1f} ms of each step are communication that backward doesn't hide",
          ms(share_of(verdict, Kind::kExposedCommunication)));
      if (percent(verdict.peer_wait) >= 1) {
        text += fmt::format("; {:.1f} ms of them are waiting for rank {}, the slowest", ms(verdict.peer_wait),
                            verdict.slowest_rank);
      }
      return text;
    }
    case Bottleneck::kCompute:
      return fmt::format("compute-bound: forward {:.0f} %, backward {:.0f} %, optimizer {:.0f} % of the step",
                         percent(share_of(verdict, Kind::kForward)),
                         percent(share_of(verdict, Kind::kBackward)),
                         percent(share_of(verdict, Kind::kOptimizer)));
    case Bottleneck::kOther: break;
  }
  return fmt::format(
      "bound by the program's own code: {:.1f} ms of each step are outside of loader, model and optimizer",
      ms(share_of(verdict, Kind::kOther)));
}

}  // namespace

std::string Verdict::to_text() const {
  if (steps == 0) return "step: none was measured";
  const std::array<int, kCategories> percents = whole_percents(categories(*this));
  std::string text = fmt::format("step {:.1f} ms   ", step_ms);
  for (std::size_t i = 0; i < percents.size(); ++i) {
    text += fmt::format("{}{} {} %", i == 0 ? "" : " | ", kCategoryNames[i], percents[i]);
  }
  return text + '\n' + explanation(*this);
}

Verdict make_verdict(const std::vector<StepTimes>& ranks) {
  TUTTI_CHECK(!ranks.empty(), ValueError, "make_verdict: wanted the steps of at least one rank, given none");
  Verdict verdict;
  verdict.world_size = static_cast<int>(ranks.size());
  verdict.steps = ranks[0].steps;
  double wall_ms = 0;
  double steps = 0;
  double least_wait = 1;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto wall_ns = static_cast<double>(ranks[rank].wall_ns());
    if (ranks[rank].steps == 0 || wall_ns <= 0) continue;
    wall_ms += wall_ns / 1e6;
    steps += static_cast<double>(ranks[rank].steps);
    for (std::size_t i = 0; i < verdict.share.size(); ++i)
      verdict.share[i] += static_cast<double>(ranks[rank].nanoseconds[i]) / wall_ns;
    const double wait = static_cast<double>(ranks[rank][Kind::kExposedCommunication]) / wall_ns;
    if (wait < least_wait) {
      least_wait = wait;
      verdict.slowest_rank = static_cast<int>(rank);
    }
  }
  if (steps == 0) return verdict;
  verdict.step_ms = wall_ms / steps;
  double sum = 0;
  for (const double share : verdict.share) sum += share;
  for (double& share : verdict.share) share /= sum;
  verdict.peer_wait = std::max(0.0, share_of(verdict, Kind::kExposedCommunication) - least_wait);
  const std::array<double, kCategories> parts = categories(verdict);
  verdict.bottleneck = kBottlenecks[std::max_element(parts.begin(), parts.end()) - parts.begin()];
  return verdict;
}

Verdict make_verdict(const StepTimes& steps, comm::ProcessGroup* group) {
  const std::shared_ptr<comm::ProcessGroup> world = comm::world();
  if (group == nullptr) group = world.get();
  std::vector<std::int64_t> mine{steps.steps};
  mine.insert(mine.end(), steps.nanoseconds.begin(), steps.nanoseconds.end());
  const auto width = static_cast<std::int64_t>(mine.size());
  const Tensor all = zeros({group->size() * width}, DType::kInt64);
  group->all_gather(all, tensor(mine)).wait();
  std::vector<StepTimes> ranks(static_cast<std::size_t>(group->size()));
  const std::int64_t* entry = all.data<std::int64_t>();
  for (StepTimes& rank : ranks) {
    rank.steps = *entry++;
    for (std::int64_t& part : rank.nanoseconds) part = *entry++;
  }
  return make_verdict(ranks);
}

}  // namespace tutti::profiler
