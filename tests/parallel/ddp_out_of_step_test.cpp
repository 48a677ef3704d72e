// SPDX-License-Identifier: Apache-2.0
// A rank that skips a backward: its next one would meet the others' earlier one.
#include <gtest/gtest.h>

#include "parallel/nets.hpp"
#include "support/errors.hpp"
#include "tutti/autograd/hooks.hpp"

namespace tutti::testing {
namespace {

using parallel::DistributedDataParallel;

constexpr int kPerRank = 3;

// With and without a comm hook: the counts travel in another way.
class OutOfStep : public ::testing::TestWithParam<bool> {
 protected:
  OutOfStep() : part_(own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank)) {
    if (!GetParam()) return;
    model_.register_comm_hook(
        [](parallel::GradBucket& bucket) { return bucket.group().all_reduce(bucket.buffer()); });
  }
  void expect_good_step() {
    net_.zero_grad();
    EXPECT_NO_THROW(loss_of(model_, part_).backward());
    EXPECT_TRUE(same_on_all_ranks(gradients_of(net_)));
  }

  SmallNet net_;
  DistributedDataParallel<SmallNet> model_{net_};
  Samples part_;
};
INSTANTIATE_TEST_SUITE_P(CommHook, OutOfStep, ::testing::Bool());

TEST_P(OutOfStep, BackwardThatOneRankHasSkippedIsAnErrorOnAllInItsNext) {
  expect_good_step();
  Tensor loss = loss_of(model_, part_);
  if (own_rank() == 0) loss = loss_of(model_, part_);  // the next step's
  const std::string message = error_of<AutogradError>([&] { loss.backward(); });
  EXPECT_TRUE(contains(message,
                       "the ranks are out of step:\n  rank 0: 1 training forwards without a backward\n"
                       "  rank 1: 0 training forwards without a backward\n"));
  EXPECT_TRUE(contains(message, "Call forwards that have none under autograd::NoGradGuard"));
  for (const Tensor& grad : gradients_of(net_)) EXPECT_FALSE(grad.defined());
  for (int step = 0; step < 2; ++step) expect_good_step();
}

TEST_P(OutOfStep, BackwardThatAllRanksSkipIsNoError) {
  loss_of(model_, part_);
  for (int step = 0; step < 2; ++step) expect_good_step();
}

TEST_P(OutOfStep, ForwardsWithoutGradientsOnOneRankAreNoError) {
  if (own_rank() == 0) autograd::no_grad([&] { loss_of(model_, part_); });
  if (own_rank() == 1) {
    net_.eval();
    loss_of(model_, part_);
    net_.train();
  }
  expect_good_step();
}

TEST_P(OutOfStep, UnequallyManyBackwardsInsideNoSyncAreNoError) {
  {
    const auto guard = model_.no_sync();
    for (int i = 0; i <= own_rank(); ++i) loss_of(model_, part_).backward();
  }
  expect_good_step();
}

// The backward had begun, but had reached no parameter.
TEST_P(OutOfStep, BackwardThatThrowsBeforeTheFirstParameterIsAnErrorOnAllInItsNext) {
  expect_good_step();
  if (own_rank() == 0) {
    const Tensor output = model_(part_.inputs);
    const auto handle = autograd::register_hook(
        output, [](const Tensor&) -> Tensor { throw ValueError("thrown by a hook"); });
    error_of<ValueError>([&] { output.sum().backward(); });
  }
  const std::string message = error_of<AutogradError>([&] { loss_of(model_, part_).backward(); });
  EXPECT_TRUE(contains(message, "the ranks are out of step"));
  for (int step = 0; step < 2; ++step) expect_good_step();
}

TEST_P(OutOfStep, UnequallyManyMicroBatchesOrForwardsBeforeABackwardAreNoError) {
  for (int i = 0; i < 3 * own_rank(); ++i) {  // their forwards outside of no_sync
    const Tensor loss = loss_of(model_, part_);
    const auto guard = model_.no_sync();
    loss.backward();
  }
  expect_good_step();
  Tensor loss = loss_of(model_, part_);
  for (int i = 0; i < 2 * own_rank(); ++i) loss = loss + loss_of(model_, part_);
  EXPECT_NO_THROW(loss.backward());
  expect_good_step();
}

TEST_P(OutOfStep, CountsPastWhatTheirBitsHold) {
  for (int step = 0; step < 130; ++step) loss_of(model_, part_);
  expect_good_step();
}

}  // namespace
}  // namespace tutti::testing
