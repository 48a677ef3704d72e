// SPDX-License-Identifier: Apache-2.0
// Under mpirun: one verdict and one trace for all ranks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "support/errors.hpp"
#include "tutti/comm/process_group.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/trace.hpp"
#include "tutti/profiler/chrome_trace.hpp"
#include "tutti/profiler/verdict.hpp"

namespace tutti {
namespace {

using nlohmann::json;

TEST(ProfilerOnRanks, EveryRankGetsTheSameVerdict) {
  const std::shared_ptr<comm::ProcessGroup> world = comm::world();
  // Rank r waits r ms for data in each of two steps of 10 ms.
  profiler::StepTimes mine{2, {}};
  const std::int64_t rank = world->rank();
  mine.nanoseconds[static_cast<std::size_t>(phase::Kind::kDataWait)] = 2'000'000 * rank;
  mine.nanoseconds[static_cast<std::size_t>(phase::Kind::kForward)] = 2'000'000 * (10 - rank);
  const profiler::Verdict verdict = profiler::make_verdict(mine);
  EXPECT_EQ(verdict.world_size, world->size());
  EXPECT_EQ(verdict.steps, 2);
  EXPECT_DOUBLE_EQ(verdict.step_ms, 10);
  const double mean_rank = (world->size() - 1) / 2.0;
  EXPECT_NEAR(verdict.share[static_cast<std::size_t>(phase::Kind::kDataWait)], mean_rank / 10, 1e-12);
  for (const std::string& text : world->exchange(verdict.to_text())) EXPECT_EQ(text, verdict.to_text());
}

TEST(ProfilerOnRanks, OneTraceHoldsTheRangesOfAllRanks) {
  const std::shared_ptr<comm::ProcessGroup> world = comm::world();
  const std::string path =
      world->exchange(::testing::TempDir() + "tutti_ranks_test_" + std::to_string(::getpid()) + ".json")[0];
  trace::take();
  trace::enable(true);
  // One after the other: the lanes must show this order.
  for (int turn = 0; turn < world->size(); ++turn) {
    if (turn == world->rank()) const trace::Range range("turn", turn);
    world->barrier();
  }
  trace::enable(false);
  profiler::write_chrome_trace(path);
  if (world->rank() == 0) {
    std::ifstream file(path);
    const json trace = json::parse(file);
    std::vector<double> begins(static_cast<std::size_t>(world->size()), -1);
    std::set<std::string> lanes;
    for (const json& event : trace["traceEvents"]) {
      if (event["name"] == "process_name") lanes.insert(event["args"]["name"].get<std::string>());
      if (event["name"] == "turn") {
        EXPECT_EQ(event["pid"], event["args"]["argument"]);
        begins[event["pid"].get<std::size_t>()] = event["ts"];
      }
    }
    EXPECT_EQ(lanes.size(), begins.size());
    EXPECT_EQ(lanes.count("rank 1"), 1U);
    EXPECT_GE(begins[0], 0);
    EXPECT_TRUE(std::is_sorted(begins.begin(), begins.end()));
    std::filesystem::remove(path);
  }
}

TEST(ProfilerOnRanks, APathThatCannotBeWrittenIsAnErrorOnEveryRank) {
  testing::expect_error<Error>([] { profiler::write_chrome_trace("/no/such/folder/trace.json"); },
                               "can't write /no/such/folder/trace.json");
}

}  // namespace
}  // namespace tutti
