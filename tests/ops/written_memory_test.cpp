// SPDX-License-Identifier: Apache-2.0
// Memory that changes behind an op's back: packed weights and reused activations.
#include <gtest/gtest.h>

#include "tutti/autograd/checkpoint.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

// A weight is used until its packed copy is kept, then written through its pointer, then used again.
TEST(WrittenMemory, ProductsSeeWritesThroughAPointer) {
  Generator generator(3);
  const Tensor x = randn({64, 128}, DType::kFloat32, {}, &generator);
  Tensor weight = randn({96, 128}, DType::kFloat32, {}, &generator);
  float* data = weight.data<float>();
  for (int i = 0; i < 3; ++i) linear(x, weight);
  const std::vector<float> before = linear(x, weight).to_vector<float>();
  for (std::int64_t i = 0; i < weight.numel(); ++i) data[i] *= 2;
  const std::vector<float> after = linear(x, weight).to_vector<float>();
  for (std::size_t i = 0; i < before.size(); ++i) ASSERT_FLOAT_EQ(after[i], 2 * before[i]);
}

TEST(WrittenMemory, ConvolutionsSeeWritesThroughAPointer) {
  Generator generator(4);
  const Tensor x = randn({2, 8, 9, 9}, DType::kFloat32, {}, &generator);
  Tensor weight = randn({16, 8, 3, 3}, DType::kFloat32, {}, &generator);
  for (int i = 0; i < 3; ++i) conv2d(x, weight);
  const std::vector<float> before = conv2d(x, weight).to_vector<float>();
  float* data = weight.data<float>();
  for (std::int64_t i = 0; i < weight.numel(); ++i) data[i] *= 2;
  const std::vector<float> after = conv2d(x, weight).to_vector<float>();
  for (std::size_t i = 0; i < before.size(); ++i) ASSERT_FLOAT_EQ(after[i], 2 * before[i]);
}

TEST(WrittenMemory, ConvolutionsTellViewsOfOneStorageApart) {
  Generator generator(5);
  const Tensor x = randn({2, 8, 9, 9}, DType::kFloat32, {}, &generator);
  const Tensor weights = randn({2, 16, 8, 3, 3}, DType::kFloat32, {}, &generator);
  for (int i = 0; i < 2; ++i) conv2d(x, weights[0]);
  const std::vector<float> own = conv2d(x, weights[1].clone()).to_vector<float>();
  EXPECT_EQ(conv2d(x, weights[1]).to_vector<float>(), own);
}

TEST(WrittenMemory, ReluOfATemporaryWorksUnderCheckpoint) {
  Generator generator(6);
  Tensor x = randn({5, 7}, DType::kFloat64, {}, &generator).requires_grad_();
  for (const bool twice : {false, true}) {
    const auto block = [](const Tensor& t) { return relu(exp(t)) + relu(sigmoid(t)); };
    x.set_grad({});
    block(x).sum().backward();
    const std::vector<double> wanted = x.grad().to_vector<double>();
    x.set_grad({});
    Tensor y = autograd::checkpoint(block, x);
    if (twice) y = y + autograd::checkpoint(block, x) * 0;
    y.sum().backward();
    const std::vector<double> given = x.grad().to_vector<double>();
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_DOUBLE_EQ(given[i], wanted[i]);
  }
}

}  // namespace
}  // namespace tutti
