// SPDX-License-Identifier: Apache-2.0
#include "tutti/nn/init.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "support/errors.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};
Moments moments_of(const Tensor& tensor) {
  Moments m;
  const std::vector<double> values = tensor.to_vector<double>();
  for (const double value : values) m.mean += value / static_cast<double>(values.size());
  for (const double value : values) {
    m.deviation += (value - m.mean) * (value - m.mean) / static_cast<double>(values.size());
    m.largest = std::max(m.largest, std::abs(value));
  }
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// fan_in = 50 * 9 = 450, fan_out = 200 * 9 = 1800.
const Dims kConv{200, 50, 3, 3};

TEST(Init, UniformFormsReachTheirBounds) {
  Tensor w = empty(kConv);
  nn::init::kaiming_uniform_(w, std::sqrt(5.0));
  EXPECT_NEAR(moments_of(w).largest, 1 / std::sqrt(450.0), 1e-4);
  nn::init::kaiming_uniform_(w, 0, nn::init::FanMode::kFanOut, nn::init::Nonlinearity::kReLU);
  EXPECT_NEAR(moments_of(w).largest, std::sqrt(6.0 / 1800), 1e-4);
  nn::init::xavier_uniform_(w, 2);
  EXPECT_NEAR(moments_of(w).largest, 2 * std::sqrt(6.0 / 2250), 1e-4);
  EXPECT_NEAR(moments_of(w).mean, 0, 1e-3);
}

TEST(Init, NormalFormsHaveTheirDeviations) {
  Tensor w = empty(kConv);
  nn::init::kaiming_normal_(w, 0, nn::init::FanMode::kFanIn, nn::init::Nonlinearity::kReLU);
  EXPECT_NEAR(moments_of(w).deviation, std::sqrt(2.0 / 450), 1e-3);
  nn::init::xavier_normal_(w);
  EXPECT_NEAR(moments_of(w).deviation, std::sqrt(2.0 / 2250), 1e-3);
  nn::init::normal_(w, 3, 0.5);
  EXPECT_NEAR(moments_of(w).mean, 3, 0.01);
  EXPECT_NEAR(moments_of(w).deviation, 0.5, 0.01);
}

TEST(Init, ConstantsCountAVersion) {
  Tensor w = zeros({3});
  const auto before = w.version();
  nn::init::ones_(w);
  EXPECT_EQ(w.to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_GT(w.version(), before);
}

TEST(Init, ImpossibleDistributionsAreNamed) {
  using testing::expect_error;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor w = zeros({2, 3});
  expect_error<ValueError>([&] { nn::init::uniform_(w, 1, 0); },
                           "uniform_: wanted finite bounds, low not above high, given 1 and 0");
  expect_error<ValueError>([&] { nn::init::uniform_(w, nan, 0); }, "uniform_: wanted finite bounds");
  expect_error<ValueError>([&] { nn::init::uniform_(w, 0, infinity); }, "uniform_: wanted finite bounds");
  expect_error<ValueError>([&] { nn::init::normal_(w, 0, -1); },
                           "normal_: wanted a finite mean and deviation");
  expect_error<ValueError>([&] { nn::init::normal_(w, nan, 1); },
                           "normal_: wanted a finite mean and deviation");
  expect_error<ValueError>([&] { nn::init::normal_(w, 0, nan); },
                           "normal_: wanted a finite mean and deviation");
  expect_error<ValueError>([&] { nn::init::xavier_uniform_(w, -1); },
                           "xavier_uniform_: wanted finite bounds");
  expect_error<ValueError>([&] { nn::init::xavier_normal_(w, -1); }, "xavier_normal_: wanted a finite mean");
  expect_error<ValueError>([&] { nn::init::kaiming_uniform_(w, nan); },
                           "kaiming_uniform_: wanted finite bounds");
  expect_error<ValueError>([&] { nn::init::kaiming_normal_(w, nan); },
                           "kaiming_normal_: wanted a finite mean");
  EXPECT_EQ(w.to_vector<float>(), std::vector<float>(6, 0)) << "refused before the write";
  EXPECT_NO_THROW(nn::init::uniform_(w, 2, 2));
  EXPECT_EQ(w.to_vector<float>(), std::vector<float>(6, 2));
}

TEST(Init, FanNeedsTwoDims) {
  testing::expect_error<ShapeError>([] { nn::init::xavier_uniform_(zeros({3})); },
                                    "xavier_uniform_: fan in and fan out need at least two dims, given [3]");
  testing::expect_error<ShapeError>(
      [] {
        nn::init::xavier_uniform_(zeros({0, 3}));
      },
      "xavier_uniform_: an empty tensor has no fan in and fan out, given [0, 3]");
}

TEST(Init, ExpandedTensorsAreRefused) {
  const Tensor x = zeros({1});
  for (const auto& [name, fill] : std::map<std::string, std::function<void(const Tensor&)>>{
           {"uniform_", [](const Tensor& t) { nn::init::uniform_(t); }},
           {"normal_", [](const Tensor& t) { nn::init::normal_(t); }},
           {"constant_", [](const Tensor& t) { nn::init::constant_(t, 1); }}}) {
    testing::expect_error<ShapeError>([&, &call = fill] { call(x.expand({3})); },
                                      name + ": elements of the tensor to be written share memory");
  }
  EXPECT_EQ(x.item<float>(), 0);
}

}  // namespace
}  // namespace tutti
