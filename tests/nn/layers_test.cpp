// SPDX-License-Identifier: Apache-2.0
#include "tutti/nn/layers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "support/errors.hpp"
#include "tutti/autograd/checkpoint.hpp"
#include "tutti/core/random.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

using testing::expect_error;

double largest(const Tensor& tensor) {
  double value = 0;
  for (const double x : tensor.to_vector<double>()) value = std::max(value, std::abs(x));
  return value;
}

TEST(Layers, DefaultInitialisationIsUniformByFanIn) {
  manual_seed(3);
  nn::Linear linear({.in_features = 100, .out_features = 400});
  EXPECT_LE(largest(linear.weight), 0.1);
  EXPECT_GT(largest(linear.weight), 0.0999);
  EXPECT_LE(largest(linear.bias), 0.1);
  nn::Conv2d conv({.in_channels = 8, .out_channels = 64, .kernel_size = 5});
  const double bound = 1 / std::sqrt(8.0 * 25);
  EXPECT_LE(largest(conv.weight), bound);
  EXPECT_GT(largest(conv.weight), 0.999 * bound);
  double mean = 0;
  for (const double x : conv.weight.to_vector<double>()) mean += x;
  EXPECT_NEAR(mean / static_cast<double>(conv.weight.numel()), 0, 0.02 * bound);
}

TEST(Layers, SameSeedGivesSameWeights) {
  manual_seed(11);
  nn::Linear a({.in_features = 5, .out_features = 4});
  manual_seed(11);
  nn::Linear b({.in_features = 5, .out_features = 4});
  EXPECT_EQ(a.weight.to_vector<float>(), b.weight.to_vector<float>());
}

TEST(Layers, RequiredOptionsAreNamed) {
  expect_error<ShapeError>([] { nn::Linear linear({.out_features = 3}); },
                           "Linear: in_features is required and must be positive, given 0");
  expect_error<ShapeError>([] { nn::Conv2d conv({.in_channels = 3, .out_channels = 4}); },
                           "Conv2d: kernel_size is required and must be positive, given 0");
  expect_error<ShapeError>(
      [] { nn::Conv2d conv({.in_channels = 3, .out_channels = 4, .kernel_size = 3, .groups = 2}); },
      "Conv2d: in_channels 3 and out_channels 4 must be multiples of groups 2");
  expect_error<ShapeError>([] { nn::BatchNorm2d norm({.eps = 1e-5}); },
                           "BatchNorm2d: num_features is required and must be positive, given 0");
  expect_error<ShapeError>([] { nn::MaxPool2d pool({}); },
                           "MaxPool2d: kernel_size is required and must be positive");
  expect_error<ValueError>([] { nn::Dropout dropout({.p = 1.5}); },
                           "Dropout: p must lie in [0, 1], given 1.5");
}

TEST(Layers, OptionsThatTheFunctionRefusesAreRefusedWhenTheModuleIsMade) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto conv = [](Size2d stride, Size2d padding, Size2d dilation) {
    nn::Conv2d module({.in_channels = 3,
                       .out_channels = 4,
                       .kernel_size = 3,
                       .stride = stride,
                       .padding = padding,
                       .dilation = dilation});
  };
  const std::string geometry = "Conv2d: stride and dilation must be positive and padding not negative";
  expect_error<ValueError>([&] { conv(0, 0, 1); }, geometry);
  expect_error<ValueError>([&] { conv({1, -1}, 0, 1); }, geometry);
  expect_error<ValueError>([&] { conv(1, {0, -1}, 1); }, geometry);
  expect_error<ValueError>([&] { conv(1, 0, 0); }, geometry);
  EXPECT_NO_THROW(conv(2, 1, 2));
  expect_error<ValueError>([] { nn::MaxPool2d pool({.kernel_size = 2, .stride = -1}); },
                           "MaxPool2d: stride and dilation must be positive");
  expect_error<ValueError>(
      [] {
        nn::MaxPool2d pool({.kernel_size = 2, .stride = {2, 0}});
      },
      "MaxPool2d: stride and dilation must be positive");
  expect_error<ValueError>([] { nn::MaxPool2d pool({.kernel_size = 2, .dilation = 0}); },
                           "MaxPool2d: stride and dilation must be positive");
  expect_error<ValueError>([] { nn::MaxPool2d pool({.kernel_size = 3, .padding = 2}); },
                           "MaxPool2d: padding must be at most half of kernel_size, given 2 x 2");
  expect_error<ValueError>([] { nn::AvgPool2d pool({.kernel_size = 2, .stride = -1}); },
                           "AvgPool2d: stride and dilation must be positive");
  expect_error<ValueError>([] { nn::AvgPool2d pool({.kernel_size = 2, .padding = -1}); },
                           "AvgPool2d: padding must be at most half of kernel_size, given -1 x -1");
  expect_error<ValueError>([] { nn::AvgPool2d pool({.kernel_size = 2, .divisor_override = -1}); },
                           "AvgPool2d: divisor_override must be positive, given -1");
  EXPECT_NO_THROW(nn::MaxPool2d({.kernel_size = 3, .padding = 1}));
  expect_error<ValueError>([] { nn::BatchNorm1d norm({.num_features = 3, .momentum = 1.5}); },
                           "BatchNorm1d: momentum must lie in [0, 1], given 1.5");
  expect_error<ValueError>([&] { nn::BatchNorm2d norm({.num_features = 3, .momentum = nan}); },
                           "BatchNorm2d: momentum must lie in [0, 1], given nan");
  expect_error<ValueError>([] { nn::BatchNorm2d norm({.num_features = 3, .eps = -1e-5}); },
                           "BatchNorm2d: eps must be finite and at least 0, given -1e-05");
  EXPECT_NO_THROW(nn::BatchNorm1d({.num_features = 3, .momentum = std::nullopt}));
  expect_error<ValueError>([&] { nn::Dropout dropout({.p = nan}); },
                           "Dropout: p must lie in [0, 1], given nan");
}

TEST(Layers, LayerWithoutBiasListsNone) {
  nn::Linear linear({.in_features = 2, .out_features = 3, .bias = false});
  EXPECT_EQ(linear.named_parameters().size(), 1U);
  EXPECT_FALSE(linear.bias.defined());
}

TEST(Layers, WrongInputIsNamed) {
  nn::Linear linear({.in_features = 4, .out_features = 3});
  expect_error<ShapeError>(
      [&] {
        linear(ones({2, 5}));
      },
      "linear: x has shape [2, 5], its last size must be the weight's in = 4 (weight [3, 4])");
  nn::BatchNorm1d norm({.num_features = 3});
  expect_error<ShapeError>([&] { norm(ones({2, 4})); }, "BatchNorm1d: num_features is 3, given x [2, 4]");
  expect_error<ShapeError>(
      [&] {
        norm(ones({2, 3, 1, 1}));
      },
      "BatchNorm1d: wanted [N, C] or [N, C, L], given [2, 3, 1, 1]");
  expect_error<ShapeError>(
      [&] {
        norm(ones({1, 3}));
      },
      "training needs more than one value per channel, given x [1, 3]");
}

// mean 2 and unbiased variance 2 of {1, 3}: running = 0.9 * start + 0.1 * batch.
TEST(Layers, BatchNormTracksStatistics) {
  nn::BatchNorm1d norm({.num_features = 1});
  const Tensor x = tensor(std::vector<float>{1, 3}, {2, 1});
  const std::vector<float> y = norm(x).to_vector<float>();
  EXPECT_NEAR(y[0], -1, 1e-4);
  EXPECT_NEAR(y[1], 1, 1e-4);
  EXPECT_NEAR(norm.running_mean.item(), 0.2, 1e-6);
  EXPECT_NEAR(norm.running_var.item(), 0.9 + 0.2, 1e-6);
  EXPECT_EQ(norm.num_batches_tracked.item<int>(), 1);
  norm.eval();
  EXPECT_NEAR(norm(x).to_vector<float>()[1], (3 - 0.2) / std::sqrt(1.1 + 1e-5), 1e-5);
  EXPECT_EQ(norm.num_batches_tracked.item<int>(), 1);
}

TEST(Layers, BatchNormWithoutMomentumAveragesCumulatively) {
  nn::BatchNorm1d norm({.num_features = 1, .momentum = std::nullopt});
  norm(tensor(std::vector<float>{1, 3}, {2, 1}));
  norm(tensor(std::vector<float>{5, 7}, {2, 1}));
  EXPECT_NEAR(norm.running_mean.item(), 4, 1e-6);
}

TEST(Layers, BatchNormInACheckpointCountsEachBatchOnce) {
  nn::BatchNorm1d norm({.num_features = 3, .momentum = std::nullopt});
  nn::BatchNorm1d plain = norm.clone();
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({5, 3}).requires_grad_();
    autograd::checkpoint([&](const Tensor& h) { return norm(h * h); }, x).sum().backward();
    plain(x * x).sum().backward();
  }
  EXPECT_EQ(norm.num_batches_tracked.item(), 3);
  EXPECT_EQ(norm.running_mean.to_vector<float>(), plain.running_mean.to_vector<float>());
  EXPECT_EQ(norm.running_var.to_vector<float>(), plain.running_var.to_vector<float>());
}

TEST(Layers, DropoutDropsOnlyInTraining) {
  nn::Dropout dropout({.p = 0.5});
  const Tensor x = ones({10000});
  double kept = 0;
  for (const float value : dropout(x).to_vector<float>()) {
    EXPECT_TRUE(value == 0 || value == 2);
    kept += value != 0 ? 1 : 0;
  }
  EXPECT_NEAR(kept / 10000, 0.5, 0.03);
  dropout.eval();
  EXPECT_EQ(dropout(x).to_vector<float>(), x.to_vector<float>());
}

}  // namespace
}  // namespace tutti
