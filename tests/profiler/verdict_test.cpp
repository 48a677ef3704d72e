// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/verdict.hpp"

#include <gtest/gtest.h>

#include <regex>

#include "support/errors.hpp"
#include "tutti/core/error.hpp"

namespace tutti {
namespace {

using profiler::Bottleneck;
using profiler::make_verdict;
using profiler::StepTimes;
using testing::contains;
using testing::expect_error;

// One step, in microseconds.
struct Parts {
  int other = 0, data = 0, forward = 0, backward = 0, communication = 0, optimizer = 0;
};
StepTimes times(const Parts& p, std::int64_t steps = 1) {
  StepTimes result{steps, {p.other, p.data, p.forward, p.backward, p.communication, p.optimizer}};
  for (std::int64_t& part : result.nanoseconds) part *= 1000 * steps;
  return result;
}

TEST(Verdict, PrintsTheMeanStepInPerCent) {
  const auto verdict = make_verdict(std::vector{times(
      {.other = 200, .data = 300, .forward = 3000, .backward = 5500, .communication = 500, .optimizer = 500},
      7)});
  EXPECT_EQ(verdict.steps, 7);
  EXPECT_EQ(verdict.bottleneck, Bottleneck::kCompute);
  EXPECT_EQ(verdict.to_text(),
            "step 10.0 ms   data 3 % | compute 90 % | exposed communication 5 % | other 2 %\n"
            "compute-bound: forward 30 %, backward 55 %, optimizer 5 % of the step");
}

TEST(Verdict, NamesEachBottleneck) {
  const auto text = [](const Parts& parts) { return make_verdict(std::vector{times(parts)}).to_text(); };
  EXPECT_TRUE(contains(text({.data = 6000, .forward = 4000}), "\ndata-bound: 6.0 ms of each step"));
  EXPECT_TRUE(
      contains(text({.forward = 4000, .communication = 6000}), "\ncommunication-bound: 6.0 ms of each step"));
  EXPECT_TRUE(contains(text({.other = 6000, .forward = 4000}),
                       "\nbound by the program's own code: 6.0 ms of each step"));
  EXPECT_TRUE(contains(text({.data = 4000, .forward = 2000, .backward = 3000, .optimizer = 1000}),
                       "\ncompute-bound"));
}

TEST(Verdict, PercentagesSumToHundred) {
  const std::regex number("([0-9]+) %");
  for (const Parts& parts : {Parts{.other = 1, .data = 1, .forward = 1},
                             Parts{.other = 1, .data = 1, .forward = 1, .communication = 4},
                             Parts{.other = 5, .data = 995, .backward = 995, .communication = 5}}) {
    const std::string text = make_verdict(std::vector{times(parts)}).to_text();
    const std::string line = text.substr(0, text.find('\n'));
    int sum = 0;
    for (std::sregex_iterator match(line.begin(), line.end(), number), end; match != end; ++match)
      sum += std::stoi((*match)[1]);
    EXPECT_EQ(sum, 100) << line;
  }
}

TEST(Verdict, AveragesOverRanksAndNamesTheOneThatOthersWaitFor) {
  // Rank 1 computes twice as long; the others spend that time in the collective.
  const StepTimes fast = times({.forward = 4000, .communication = 6000});
  const StepTimes slow = times({.forward = 9000, .communication = 1000});
  const auto verdict = make_verdict(std::vector{fast, slow, fast, fast, fast});
  EXPECT_EQ(verdict.world_size, 5);
  EXPECT_DOUBLE_EQ(verdict.step_ms, 10);
  EXPECT_EQ(verdict.slowest_rank, 1);
  EXPECT_DOUBLE_EQ(verdict.share[static_cast<std::size_t>(phase::Kind::kForward)], 0.5);
  EXPECT_DOUBLE_EQ(verdict.share[static_cast<std::size_t>(phase::Kind::kExposedCommunication)], 0.5);
  EXPECT_DOUBLE_EQ(verdict.peer_wait, 0.4);
  const auto worse = make_verdict(std::vector{fast, fast, slow, fast, fast, fast});
  EXPECT_EQ(worse.bottleneck, Bottleneck::kCommunication);
  EXPECT_TRUE(contains(worse.to_text(), "4.2 ms of them are waiting for rank 2, the slowest"));
}

TEST(Verdict, SaysWhenNothingWasMeasured) {
  EXPECT_EQ(make_verdict(StepTimes{}).to_text(), "step: none was measured");
  expect_error<ValueError>([] { make_verdict(std::vector<StepTimes>{}); }, "at least one rank");
}

}  // namespace
}  // namespace tutti
