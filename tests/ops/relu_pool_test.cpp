// SPDX-License-Identifier: Apache-2.0
// max_pool2d of a temporary that relu made takes over relu's gradient. These tests look for somebody who can tell.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "support/errors.hpp"
#include "tutti/autograd/autograd.hpp"
#include "tutti/core/error.hpp"
#include "tutti/device/memory.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using tutti::testing::expect_error;
using Values = std::vector<float>;

const MaxPool2dOptions kTwo{.kernel_size = 2};

// Two windows: one with a positive element, one without.
Tensor small() { return tensor({-1, 2, -3, 0, -5, 1, -2, -4}).view({1, 1, 2, 4}).detach().requires_grad_(); }
const Values kGradient{0, 7, 0, 0, 0, 0, 0, 0};  // of small(), for 7 and 9 from above
Tensor gradient() { return tensor({7, 9}).view({1, 1, 1, 2}); }

void expect_same_bits(const Tensor& a, const Tensor& b) {
  const auto left = a.to(DType::kFloat64).to_vector<double>(),
             right = b.to(DType::kFloat64).to_vector<double>();
  ASSERT_EQ(left.size(), right.size());
  EXPECT_EQ(std::memcmp(left.data(), right.data(), left.size() * sizeof(double)), 0);
}

// Normal numbers, zeros of both signs, an image whose windows are all negative, NaN.
Tensor varied(DType dtype) {
  Generator generator(3);
  Tensor x = randn({3, 5, 7, 9}, dtype, {}, &generator);
  x.narrow(3, 2, 1).fill_(0);
  x.narrow(3, 5, 1).fill_(-0.0);
  x.narrow(0, 2, 1).narrow(1, 1, 1).fill_(-1);
  x.narrow(0, 1, 1).narrow(2, 3, 1).narrow(3, 0, 1).fill_(std::numeric_limits<double>::quiet_NaN());
  return x;
}

TEST(ReluThenPool, GivesTheBitsOfTheTwoStepsAlone) {
  const MaxPool2dOptions windows[] = {
      kTwo, {.kernel_size = 3, .stride = 1, .padding = 1}, {.kernel_size = 2, .stride = 2, .dilation = 2}};
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    for (const MaxPool2dOptions& window : windows) {
      const Tensor x = varied(dtype).requires_grad_(), other = x.detach().clone().requires_grad_();
      const Tensor kept = relu(x * 1);
      const Tensor wanted = max_pool2d(kept, window);
      const Tensor y = max_pool2d(relu(other * 1), window);
      expect_same_bits(y, wanted);
      const Tensor above = randn(y.sizes(), dtype);
      wanted.backward(above);
      y.backward(above);
      expect_same_bits(other.grad(), x.grad());
    }
  }
}

TEST(ReluThenPool, FreesTheResultOfReluAtOnce) {
  const Tensor x = ones({4, 4, 32, 32}).requires_grad_();
  const std::int64_t before = memory_stats().allocated_bytes;
  const Tensor y = max_pool2d(relu(x * 2), kTwo);
  EXPECT_LT(memory_stats().allocated_bytes - before, x.numel() * 4);
  const Tensor of_both_forms = max_pool2d(relu(std::as_const(x) * 2), kTwo);  // a relu that is not in place
  const Tensor doubled = x * 2;
  const std::int64_t with_input = memory_stats().allocated_bytes;
  const Tensor z = max_pool2d(relu(doubled), kTwo);
  EXPECT_LT(memory_stats().allocated_bytes - with_input, x.numel() * 4);
}

TEST(ReluThenPool, ConsumesTheVariableThatIsMovedIntoIt) {
  const Tensor x = small();
  Tensor h = relu(x * 1);
  const Tensor y = max_pool2d(std::move(h), kTwo);
  EXPECT_FALSE(h.defined());  // NOLINT(bugprone-use-after-move)
  y.backward(gradient());
  EXPECT_EQ(x.grad().to_vector<float>(), kGradient);
}

TEST(ReluThenPool, LeavesReluAloneIfAnotherHandleOrViewSeesItsResult) {
  const Tensor x = small();
  Tensor h = relu(x * 1);
  const Tensor kept = h;
  (max_pool2d(std::move(h), kTwo) * gradient()).sum().backward({}, {.retain_graph = true});
  kept.sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Values{0, 8, 0, 0, 0, 1, 0, 0}));

  const Tensor other = small();
  Tensor g = relu(other * 1);
  const Tensor view = g.view({8});
  ((max_pool2d(std::move(g), kTwo) * gradient()).sum() + view.sum()).backward();
  EXPECT_EQ(other.grad().to_vector<float>(), (Values{0, 8, 0, 0, 0, 1, 0, 0}));
}

TEST(ReluThenPool, LeavesReluAloneIfAHookOrRetainGradLooksAtIt) {
  const Tensor x = small();
  Tensor h = relu(x * 1);
  Values seen;
  const auto handle = autograd::register_hook(h, [&seen](const Tensor& g) {
    seen = g.to_vector<float>();
    return Tensor();
  });
  max_pool2d(std::move(h), kTwo).backward(gradient());
  EXPECT_EQ(seen, (Values{0, 7, 9, 0, 0, 0, 0, 0}));  // the first of equal elements
  EXPECT_EQ(x.grad().to_vector<float>(), kGradient);

  const Tensor other = small();
  const Tensor doubled = other * 2;
  Tensor g = relu(doubled);
  g.retain_grad();
  const Tensor y = max_pool2d(std::move(g), kTwo);
  y.backward(gradient());
  EXPECT_EQ(other.grad().to_vector<float>()[1], 14);
}

TEST(ReluThenPool, KeepsTheHooksOfReluSInput) {
  const Tensor x = small();
  Tensor h = x * 1;
  Values seen;
  const auto handle = autograd::register_hook(h, [&seen](const Tensor& g) {
    seen = g.to_vector<float>();
    return g * 2;
  });
  max_pool2d(relu(h), kTwo).backward(gradient());
  EXPECT_EQ(seen, kGradient);
  EXPECT_EQ(x.grad().to_vector<float>()[1], 14);
}

TEST(ReluThenPool, AddsItsGradientToThatOfAnotherUserOfReluSInput) {
  const Tensor x = small();
  const Tensor h = x * 1;
  ((max_pool2d(relu(h), kTwo) * gradient()).sum() + h.sum()).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Values{1, 8, 1, 1, 1, 1, 1, 1}));
}

TEST(ReluThenPool, OfALeafGivesItsGradient) {
  const Tensor x = small();
  max_pool2d(relu(x), kTwo).backward(gradient());
  EXPECT_EQ(x.grad().to_vector<float>(), kGradient);
}

TEST(ReluThenPool, LetsItsResultBeWritten) {
  const Tensor x = small();
  Tensor y = max_pool2d(relu(x * 1), kTwo);
  y.mul_(0);
  y.backward(gradient());
  EXPECT_EQ(x.grad().to_vector<float>(), Values(8, 0));
}

TEST(ReluThenPool, StillRefusesAWriteBetweenTheTwo) {
  const Tensor x = small();
  Tensor h = relu(x * 1);
  {
    const autograd::NoGradGuard no_grad;
    h.add_(1);
  }
  const Tensor y = max_pool2d(std::move(h), kTwo);
  expect_error<AutogradError>([&] { y.backward(gradient()); }, "relu");
}

TEST(ReluThenPool, RunsAgainWithARetainedGraphAndInsideACheckpoint) {
  const Tensor x = small();
  const Tensor y = max_pool2d(relu(x * 1), kTwo);
  y.backward(gradient(), {.retain_graph = true});
  y.backward(gradient());
  EXPECT_EQ(x.grad().to_vector<float>()[1], 14);

  const Tensor other = small();
  autograd::checkpoint([](const Tensor& t) { return max_pool2d(relu(t * 1), kTwo); }, other)
      .backward(gradient());
  EXPECT_EQ(other.grad().to_vector<float>(), kGradient);
}

}  // namespace
}  // namespace tutti
