// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/step_profiler.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tutti/autograd/function.hpp"
#include "tutti/core/trace.hpp"
#include "tutti/data/data_loader.hpp"
#include "tutti/data/dataset.hpp"
#include "tutti/nn/layers.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/optim/sgd.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using phase::Kind;
using profiler::StepProfiler;

constexpr std::int64_t kPause = 20'000'000;  // ns

void pause() { std::this_thread::sleep_for(std::chrono::nanoseconds(kPause)); }

// Pauses when it runs forward and backward.
struct Slow : autograd::Function<Slow> {
  static Tensor forward(Context&, const Tensor& x) {
    pause();
    return x.clone();
  }
  static Tensor backward(Context&, const Tensor& grad) {
    pause();
    return grad;
  }
};
struct Net : nn::Module<Net> {
  nn::Linear fc{*this, "fc", {.in_features = 2, .out_features = 1}};
  Tensor forward(const Tensor& x) { return Slow::apply(fc(x)); }
};
struct SlowDataset : data::Dataset<SlowDataset> {
  std::size_t size() const { return 4; }
  void read(std::size_t, data::Row& row) const {
    pause();
    for (float& value : row.input<float>({2})) value = 1;
  }
};

// Upper bounds would fail on a loaded machine. They aren't needed: time that is given to a wrong phase is missing in its own.
void expect_pauses(std::int64_t nanoseconds, std::int64_t pauses) { EXPECT_GE(nanoseconds, pauses * kPause); }

TEST(StepProfiler, PhasesSumToTheWallTimeOfTheSteps) {
  StepProfiler steps(0);
  const std::int64_t before = trace::now_ns();
  steps.restart();
  const std::int64_t after_start = trace::now_ns();
  std::int64_t before_end = 0;
  for (int i = 0; i < 3; ++i) {
    {
      const phase::Scope scope(Kind::kDataWait);
      pause();
    }
    pause();
    before_end = trace::now_ns();
    steps.end_step();
  }
  const std::int64_t end = trace::now_ns();
  const auto& total = steps.total();
  EXPECT_EQ(total.steps, 3);
  EXPECT_LE(total.wall_ns(), end - before);
  EXPECT_GE(total.wall_ns(), before_end - after_start);
  EXPECT_GE(total[Kind::kDataWait], 3 * kPause);
  EXPECT_GE(total[Kind::kOther], 3 * kPause);
  EXPECT_EQ(total[Kind::kDataWait] + total[Kind::kOther], total.wall_ns());
}

TEST(StepProfiler, TellsLoaderForwardBackwardOptimizerAndTheRestApart) {
  Net net;
  data::DataLoader loader{SlowDataset{}, {.batch_size = 2}};
  optim::Sgd optimizer{net.parameters(), {.lr = 0.1}};
  StepProfiler steps(0);
  steps.restart();
  for (const auto& [x, unused] : loader) {
    Tensor loss = net(x).sum();
    loss.backward();
    optimizer.step();
    pause();
    steps.end_step();
  }
  const auto& total = steps.total();
  ASSERT_EQ(total.steps, 2);
  expect_pauses(total[Kind::kDataWait], 4);  // two samples a batch
  expect_pauses(total[Kind::kForward], 2);
  expect_pauses(total[Kind::kBackward], 2);
  expect_pauses(total[Kind::kOther], 2);
  EXPECT_GT(total[Kind::kOptimizer], 0);
  EXPECT_EQ(total[Kind::kExposedCommunication], 0);
}

TEST(StepProfiler, LossAfterTheModelBelongsToForward) {
  Net net;
  StepProfiler steps(0);
  Tensor loss = net(ones({1, 2}));
  pause();
  loss.sum().backward();
  steps.end_step();
  expect_pauses(steps.total()[Kind::kForward], 2);
}

TEST(StepProfiler, WarmUpStepsStayOutOfTheTotal) {
  StepProfiler steps(1);
  pause();
  steps.end_step();
  EXPECT_EQ(steps.total().steps, 0);
  EXPECT_EQ(steps.total().wall_ns(), 0);
  EXPECT_GE(steps.last().wall_ns(), kPause);
  pause();
  steps.end_step();
  EXPECT_EQ(steps.total().steps, 1);
  EXPECT_EQ(steps.total().wall_ns(), steps.last().wall_ns());
}

TEST(StepProfiler, RestartLeavesOutWhatWentBefore) {
  StepProfiler steps(0);
  pause();  // an evaluation
  const std::int64_t after_evaluation = trace::now_ns();
  steps.restart();
  steps.end_step();
  EXPECT_LE(steps.total().wall_ns(), trace::now_ns() - after_evaluation);
}

}  // namespace
}  // namespace tutti
