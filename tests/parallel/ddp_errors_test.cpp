// SPDX-License-Identifier: Apache-2.0
// Ranks that differ: one error on every rank, in the step that fails, with names.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "parallel/nets.hpp"
#include "support/errors.hpp"
#include "tutti/autograd/hooks.hpp"
#include "tutti/nn/containers.hpp"

namespace tutti::testing {
namespace {

using parallel::DistributedDataParallel;

constexpr int kPerRank = 3;

// Two branches; each rank says which it takes.
struct Branches : nn::Module<Branches> {
  nn::Linear left{*this, "left", {.in_features = 36, .out_features = 5}};
  nn::Linear right{*this, "right", {.in_features = 36, .out_features = 5}};
  Tensor forward(const Tensor& x, bool use_right) {
    const Tensor flat = x.flatten(1);
    return use_right ? left(flat) + right(flat) : left(flat);
  }
};

class MissingGradient : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(BucketView, MissingGradient, ::testing::Bool());

TEST_P(MissingGradient, IsNamedOnEveryRankInTheFailingStep) {
  Branches net;
  DistributedDataParallel model{net, {.gradient_as_bucket_view = GetParam()}};
  const Samples part = own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank);
  const auto step = [&](bool use_right) {
    cross_entropy(model(part.inputs, use_right), part.targets).backward();
  };
  step(true);
  net.zero_grad();
  const std::string message = error_of<AutogradError>([&] { step(own_rank() != 1); });
  EXPECT_TRUE(contains(message, "rank 1: no gradient for right.weight, right.bias\n"));
  EXPECT_FALSE(contains(message, "rank 0:"));
  for (const Tensor& grad : gradients_of(net)) EXPECT_FALSE(grad.defined());
  // The wrapper goes on working.
  step(true);
  EXPECT_TRUE(same_on_all_ranks(gradients_of(net)));
}

TEST(Destroyed, WhileItsBackwardRuns) {
  Branches net;
  auto model = std::make_unique<DistributedDataParallel<Branches>>(net);
  const Samples part = own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank);
  Tensor loss = cross_entropy((*model)(part.inputs, true), part.targets);
  const autograd::HookHandle hook = autograd::register_hook(net.right.weight, [&](const Tensor&) {
    model = nullptr;
    return Tensor();
  });
  EXPECT_TRUE(contains(error_of<AutogradError>([&] { loss.backward(); }),
                       "DistributedDataParallel was destroyed while its backward ran"));
}

TEST(MissingGradient, UnusedOnEveryRankIsAnErrorToo) {
  Branches net;
  DistributedDataParallel model{net};
  const Samples part = own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank);
  const std::string message =
      error_of<AutogradError>([&] { cross_entropy(model(part.inputs, false), part.targets).backward(); });
  for (int rank = 0; rank < ranks(); ++rank) {
    EXPECT_TRUE(contains(message, concat("rank ", rank, ": no gradient for right.weight, right.bias")));
  }
}

// One of several ranks fails; all get an error in that step, long before the time-out, and the wrapper goes on working.
class FailureOfOneRank : public ::testing::Test {
 protected:
  FailureOfOneRank() : part_(own_part(joined_batch(kPerRank, DType::kFloat32), kPerRank)) {}
  // The failing rank gets its own exception, the others one that holds `text`.
  void expect_failure(const std::string& text) {
    if (own_rank() == 1) {
      expect_error<ValueError>([&] { loss_of(model_, part_).backward(); }, "this is rank 1's");
    } else {
      const std::string message = error_of<AutogradError>([&] { loss_of(model_, part_).backward(); });
      EXPECT_TRUE(contains(message, "rank 1: " + text));
      EXPECT_TRUE(contains(message, "All gradients of this step were dropped"));
    }
    for (const Tensor& grad : gradients_of(net_)) EXPECT_FALSE(grad.defined());
  }
  void expect_good_step() {
    net_.zero_grad();
    loss_of(model_, part_).backward();
    EXPECT_TRUE(same_on_all_ranks(gradients_of(net_)));
  }
  // Throws in the first step, on rank 1.
  void throw_once() {
    if (own_rank() == 1 && !std::exchange(has_thrown_, true)) throw ValueError("this is rank 1's");
  }
  // Of the parameter whose gradient comes last.
  [[nodiscard]] autograd::HookHandle throw_once_in_backward() {
    return autograd::register_hook(net_.conv.weight, [&](const Tensor&) {
      throw_once();
      return Tensor();
    });
  }
  // After a backward's last gradient has left.
  [[nodiscard]] std::vector<autograd::HookHandle> throw_at_last_gradient() {
    std::vector<autograd::HookHandle> handles;
    for (const Tensor& parameter : net_.parameters()) {
      handles.push_back(autograd::register_post_accumulate_grad_hook(
          parameter, [&, left = net_.parameters().size()](const Tensor&) {
            if (++arrived_ % left == 0) throw_once();
          }));
    }
    return handles;
  }

  SmallNet net_;
  DistributedDataParallel<SmallNet> model_{net_, {.bucket_cap_mb = 0.0001, .first_bucket_cap_mb = 0.0001}};
  Samples part_;
  bool has_thrown_ = false;
  std::size_t arrived_ = 0;
};

TEST_F(FailureOfOneRank, InItsCommHook) {
  model_.register_comm_hook([&](parallel::GradBucket& bucket) {
    if (bucket.index() == 1) throw_once();
    return bucket.group().all_reduce(bucket.buffer());
  });
  expect_failure("its comm hook: this is rank 1's");
  expect_good_step();
}

TEST_F(FailureOfOneRank, InACommHookThatSendsSomethingElse) {
  model_.register_comm_hook([&](parallel::GradBucket& bucket) {
    if (bucket.is_last()) throw_once();
    const Tensor half = bucket.buffer().to(DType::kFloat16);
    return bucket.group().all_reduce(half).then(
        [buffer = bucket.buffer(), half] { raw::copy(buffer, half); });
  });
  expect_failure("its comm hook: this is rank 1's");
  expect_good_step();
}

TEST_F(FailureOfOneRank, InAFunctionOfItsCommHook) {
  model_.register_comm_hook([&](parallel::GradBucket& bucket) {
    return bucket.group().all_reduce(bucket.buffer()).then([&] { throw_once(); });
  });
  expect_failure("its comm hook: this is rank 1's");
  expect_good_step();
}

TEST_F(FailureOfOneRank, InAnotherHookOfBackward) {
  const auto handle = throw_once_in_backward();
  expect_failure("its backward has thrown an exception of its own");
  expect_good_step();
}

TEST_F(FailureOfOneRank, InAnotherHookOfBackwardBesideACommHook) {
  model_.register_comm_hook(
      [](parallel::GradBucket& bucket) { return bucket.group().all_reduce(bucket.buffer()); });
  const auto handle = throw_once_in_backward();
  expect_failure("its backward has thrown an exception of its own");
  expect_good_step();
}

// Two graphs at once: the second backward begins with nothing called in between.
TEST_F(FailureOfOneRank, TheNextBackwardNeedsNoForwardBefore) {
  const auto handle = throw_once_in_backward();
  const Tensor first = loss_of(model_, part_);
  const Tensor second = loss_of(model_, part_);
  if (own_rank() == 1) {
    expect_error<ValueError>([&] { first.backward(); }, "this is rank 1's");
  } else {
    expect_error<AutogradError>([&] { first.backward(); }, "its backward has thrown");
  }
  second.backward();
  std::vector<Tensor> gradients;
  for (const Tensor& gradient : gradients_of(net_)) gradients.push_back(gradient.clone());
  EXPECT_TRUE(same_on_all_ranks(gradients));
  net_.zero_grad();
  loss_of(model_, part_).backward();
  EXPECT_TRUE(same_bits(gradients, gradients_of(net_)));
}

// It throws when its last gradient has left: the others step, and learn of it in the next backward.
TEST_F(FailureOfOneRank, AfterItsLastBucketHasLeft) {
  const auto handles = throw_at_last_gradient();
  if (own_rank() == 1) {
    expect_error<ValueError>([&] { loss_of(model_, part_).backward(); }, "this is rank 1's");
  } else {
    EXPECT_NO_THROW(loss_of(model_, part_).backward());
  }
  net_.zero_grad();
  expect_error<AutogradError>([&] { loss_of(model_, part_).backward(); },
                              "rank 1: its last backward has thrown after its gradients had left");
  expect_good_step();
}

// As above, while another rank fails in the step that this one has sent its part of: nobody makes it.
TEST_F(FailureOfOneRank, AfterItsLastBucketHasLeftBesideOneThatIsOutOfStep) {
  const auto handles = throw_at_last_gradient();
  if (own_rank() == 0) loss_of(model_, part_);
  expect_failure("its backward has thrown an exception of its own");
  expect_good_step();
}

template <class Net>
std::string construction_error(Net& net) {
  return error_of<ModuleError>([&] { DistributedDataParallel model{net}; });
}

TEST(DifferentModules, WidthIsNamed) {
  nn::Linear net({.in_features = 4, .out_features = own_rank() == 1 ? 6 : 5});
  const std::string message = construction_error(net);
  EXPECT_TRUE(contains(
      message,
      "Entry 0 of rank 0: parameter weight float32 [5, 4] strides [4, 1] requires_grad (2 entries)"));
  EXPECT_TRUE(contains(
      message, "of rank 1: parameter weight float32 [6, 4] strides [4, 1] requires_grad (2 entries)"));
}

TEST(DifferentModules, ExtraLayerIsNamed) {
  nn::Sequential net{nn::Linear{{.in_features = 4, .out_features = 5}}};
  if (own_rank() == 1) net.push_back(nn::Linear{{.in_features = 5, .out_features = 5}});
  const std::string message = construction_error(net);
  EXPECT_TRUE(contains(
      message,
      "Entry 2 of rank 0: no further entry (2 entries); of rank 1: parameter 1.weight float32 [5, 5]"));
}

TEST(DifferentModules, FrozenParameterIsNamed) {
  nn::Linear net({.in_features = 4, .out_features = 5});
  if (own_rank() == 1) net.bias.requires_grad_(false);
  EXPECT_TRUE(contains(construction_error(net), "of rank 1: parameter bias float32 [5] strides [1] frozen"));
}

TEST(DifferentModules, DTypeIsNamed) {
  nn::Linear net({.in_features = 4, .out_features = 5});
  if (own_rank() == 1) net.to(DType::kFloat64);
  EXPECT_TRUE(contains(construction_error(net), "of rank 1: parameter weight float64 [5, 4]"));
}

// Gradients lie in the bucket as their parameter does: ranks of two layouts would mix up its elements.
TEST(DifferentModules, LayoutIsNamed) {
  nn::Linear net({.in_features = 4, .out_features = 5});
  if (own_rank() == 1) net.weight = net.weight.detach().t().contiguous().t().requires_grad_();
  const std::string message = construction_error(net);
  EXPECT_TRUE(contains(message, "rank 0: parameter weight float32 [5, 4] strides [4, 1] requires_grad"));
  EXPECT_TRUE(contains(message, "rank 1: parameter weight float32 [5, 4] strides [1, 5] requires_grad"));
}

// A stride that no element is reached by tells nothing of the layout.
TEST(DifferentModules, StridesOfDimsOfSize1DoNotMatter) {
  nn::Linear net({.in_features = 4, .out_features = 1});
  if (own_rank() == 1) net.weight = empty({4, 1}).t().requires_grad_();  // strides [1, 1]
  EXPECT_NO_THROW(DistributedDataParallel{net});
}

struct Swapped : nn::Module<Swapped> {
  nn::Linear a, b;
  explicit Swapped(bool swapped)
      : a(*this, swapped ? "b" : "a", {.in_features = 3, .out_features = 3}),
        b(*this, swapped ? "a" : "b", {.in_features = 3, .out_features = 3}) {}
  Tensor forward(const Tensor& x) { return b(a(x)); }
};
TEST(DifferentModules, SwappedNamesOfEqualShapesAreFound) {
  Swapped net(own_rank() == 1);
  EXPECT_TRUE(contains(construction_error(net), "of rank 0: parameter a.weight"));
}

}  // namespace
}  // namespace tutti::testing
