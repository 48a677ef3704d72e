// SPDX-License-Identifier: Apache-2.0
// Results may take the memory of tensors that nobody else can see. These tests look for somebody who can.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "tutti/autograd/autograd.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using Values = std::vector<float>;

TEST(ReuseOfMemory, ReluOfATemporaryTakesItsMemoryAndGivesTheSameGradients) {
  Tensor x = tensor({-1, 2, -3, 4}).requires_grad_();
  Tensor h = x * 2;
  const void* memory = h.raw_data();
  const Tensor y = relu(std::move(h));
  EXPECT_EQ(y.raw_data(), memory);
  EXPECT_EQ(y.to_vector<float>(), (Values{0, 4, 0, 8}));
  y.sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), (Values{0, 2, 0, 2}));
}

TEST(ReuseOfMemory, ReluLeavesAResultAloneThatItsOperationHasSaved) {
  Tensor x = tensor({-1, 2}).requires_grad_();
  const Tensor y = relu(tanh(x));  // tanh's backward needs its result
  y.sum().backward();
  const float t = std::tanh(2.0F);
  EXPECT_EQ(x.grad().to_vector<float>()[0], 0);
  EXPECT_NEAR(x.grad().to_vector<float>()[1], 1 - t * t, 1e-6);
}

TEST(ReuseOfMemory, ReluLeavesAResultAloneThatAnotherHandleSees) {
  Tensor x = tensor({-1, 2}).requires_grad_();
  Tensor h = x * 2;
  const Tensor kept = h;
  const Tensor view = (x * 3).view({2, 1});
  const Tensor y = relu(std::move(h)) + relu(view.view({2}));
  EXPECT_EQ(kept.to_vector<float>(), (Values{-2, 4}));
  EXPECT_EQ(view.to_vector<float>(), (Values{-3, 6}));
  EXPECT_EQ(y.to_vector<float>(), (Values{0, 10}));
}

TEST(ReuseOfMemory, ReluDoesNotWriteTheUsersMemory) {
  Values memory{-1, 2};
  EXPECT_EQ(relu(from_blob(memory.data(), {2}, DType::kFloat32)).to_vector<float>(), (Values{0, 2}));
  Tensor leaf = from_blob(memory.data(), {2}, DType::kFloat32).requires_grad_();
  const Tensor y = relu(std::move(leaf));
  EXPECT_EQ(memory, (Values{-1, 2}));
}

TEST(ReuseOfMemory, BackwardLeavesTheGradientItWasGivenAlone) {
  Tensor x = tensor({-1, 2}).requires_grad_();
  const Tensor gradient = tensor({5, 7});
  relu(x).backward(gradient);
  EXPECT_EQ(gradient.to_vector<float>(), (Values{5, 7}));
  EXPECT_EQ(x.grad().to_vector<float>(), (Values{0, 7}));
}

TEST(ReuseOfMemory, BackwardLeavesARetainedGradientAlone) {
  Tensor x = tensor({-1, 2}).requires_grad_();
  const Tensor y = relu(x);
  y.retain_grad();
  (y * tensor({5, 7})).sum().backward();
  EXPECT_EQ(y.grad().to_vector<float>(), (Values{5, 7}));
  EXPECT_EQ(x.grad().to_vector<float>(), (Values{0, 7}));
}

TEST(ReuseOfMemory, BackwardLeavesAGradientAloneThatAHookHasKept) {
  Tensor x = tensor({-1, 2}).requires_grad_();
  const Tensor y = relu(x);
  Tensor seen;
  const auto handle = autograd::register_hook(y, [&seen](const Tensor& gradient) {
    seen = gradient;
    return Tensor();
  });
  (y * tensor({5, 7})).sum().backward();
  EXPECT_EQ(seen.to_vector<float>(), (Values{5, 7}));
  EXPECT_EQ(x.grad().to_vector<float>(), (Values{0, 7}));
}

TEST(ReuseOfMemory, OneGradientForTwoInputsServesBoth) {
  Tensor a = tensor({-1, 2}).requires_grad_();
  Tensor b = tensor({3, -4}).requires_grad_();
  ((relu(a) + relu(b)) * tensor({5, 7})).sum().backward();
  EXPECT_EQ(a.grad().to_vector<float>(), (Values{0, 7}));
  EXPECT_EQ(b.grad().to_vector<float>(), (Values{5, 0}));
}

}  // namespace
}  // namespace tutti
