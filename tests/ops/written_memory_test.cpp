// SPDX-License-Identifier: Apache-2.0
// Memory that changes behind an op's back: packed weights and reused activations.
#include <gtest/gtest.h>

#include "support/errors.hpp"
#include "tutti/autograd/checkpoint.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using testing::expect_error;

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

TEST(WrittenMemory, AnExpandedTensorIsNotFilled) {
  Tensor x = zeros({3, 1});
  expect_error<ShapeError>(
      [&] {
        x.expand({2, 3, 4}).fill_(1);
      },
      "fill_: elements of the tensor to be written share memory (shape [2, 3, 4]");
  expect_error<ShapeError>([&] { x.expand({3, 4}).zero_(); }, "fill_: elements");
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(x.version(), 0U);
}

TEST(WrittenMemory, RunningStatisticsShareNone) {
  const Tensor x = ones({4, 3}), three = ones({3});
  const auto train = [](const Tensor& input, const Tensor& mean, const Tensor& var, const Tensor& weight) {
    batch_norm(input, mean, var, weight, {}, {.training = true});
  };
  expect_error<ShapeError>([&] { train(x, zeros({1}).expand({3}), three, {}); },
                           "batch_norm: running_mean: elements of the tensor to be written share memory");
  expect_error<ShapeError>([&] { train(x, three, zeros({1}).expand({3}), {}); }, "batch_norm: running_var: ");
  expect_error<ShapeError>([&] { train(x, three, three, {}); },
                           "batch_norm: running_var, which training writes, shares memory with running_mean");
  expect_error<ShapeError>([&] { train(x, x[0], three, {}); }, "running_mean, which training writes, shares");
  expect_error<ShapeError>([&] { train(x, three, x[3], {}); }, "shares memory with x; clone() it first");
  expect_error<ShapeError>([&] { train(x, three, zeros({3}), three); }, "shares memory with weight");
  EXPECT_EQ(three.to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_NO_THROW(batch_norm(x, three, three));  // only read
  const Tensor both = ones({2, 3});
  EXPECT_NO_THROW(train(x, both[0], both[1], {}));
}

}  // namespace
}  // namespace tutti
