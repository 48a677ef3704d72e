// SPDX-License-Identifier: Apache-2.0
#include "tutti/optim/clip_grad.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/errors.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::optim {
namespace {

using tutti::testing::contains;
using tutti::testing::error_of;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor parameter_with(const Tensor& gradient) {
  Tensor parameter = zeros_like(gradient);
  parameter.set_grad(gradient);
  return parameter;
}

TEST(ClipGradNorm, GradientsAreScaledTogetherAndTheNormBeforeIsReturned) {
  const Tensor a = parameter_with(tensor({3.0, 0.0}));
  const Tensor b = parameter_with(tensor({0.0, -4.0, 12.0}));
  const Tensor without = zeros({5});
  const double norm = nn::clip_grad_norm_(std::vector<Tensor>{a, without, b}, 2.0);
  EXPECT_DOUBLE_EQ(norm, 13.0);
  const double factor = 2.0 / (13.0 + 1e-6);
  EXPECT_FLOAT_EQ(a.grad().to_vector<float>()[0], static_cast<float>(3 * factor));
  EXPECT_FLOAT_EQ(b.grad().to_vector<float>()[1], static_cast<float>(-4 * factor));
  EXPECT_FLOAT_EQ(b.grad().to_vector<float>()[2], static_cast<float>(12 * factor));
  EXPECT_FALSE(without.grad().defined());
  EXPECT_EQ(a.grad().version(), 1U);
}

TEST(ClipGradNorm, SmallGradientsKeepTheirBits) {
  const Tensor a = parameter_with(tensor({0.3, -0.1}));
  const std::vector<float> before = a.grad().to_vector<float>();
  nn::clip_grad_norm_(std::vector<Tensor>{a}, 1.0);
  EXPECT_EQ(a.grad().to_vector<float>(), before);
}

TEST(ClipGradNorm, OtherNorms) {
  const auto norm_of = [](double norm_type) {
    const Tensor a = parameter_with(tensor({3.0, -7.0}));
    const Tensor b = parameter_with(tensor({-2.0, 0.5}));
    return clip_grad_norm_(std::vector<Tensor>{a, b}, 100, {.norm_type = norm_type});
  };
  EXPECT_NEAR(norm_of(1), 12.5, 1e-12);
  EXPECT_NEAR(norm_of(3), std::cbrt(27 + 343 + 8 + 0.125), 1e-12);
  EXPECT_EQ(norm_of(kInfinity), 7.0);
}

TEST(ClipGradNorm, MixedDtypesAndLayoutsCountAsOneVector) {
  Tensor wide = zeros({2, 3});
  const Tensor a = parameter_with(wide.t());  // dense, not row-major
  a.grad().copy_(tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2}));
  const Tensor b = parameter_with(tensor(std::vector<double>{8.0}));
  Tensor half =
      parameter_with(tensor({60000.0, 60000.0}).to(DType::kFloat16));  // its squares overflow float16
  const double squares = 91.0 + 64.0 + 2 * std::pow(half.grad().to_vector<double>()[0], 2);
  const double norm = clip_grad_norm_(std::vector<Tensor>{a, b, half}, 1.0);
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-6 * norm);
  EXPECT_NEAR(b.grad().item<double>(), 8.0 / (norm + 1e-6), 1e-12);
  EXPECT_NEAR(half.grad().to_vector<double>()[1], std::sqrt(0.5), 1e-3);
}

TEST(ClipGradNorm, AnInfiniteNormZeroesWhatIsFiniteAndANaNReachesAll) {
  const Tensor a = parameter_with(tensor({1.0, 2.0}));
  const Tensor b = parameter_with(tensor({kInfinity}));
  EXPECT_EQ(clip_grad_norm_(std::vector<Tensor>{a, b}, 1.0), kInfinity);
  EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_TRUE(std::isnan(b.grad().item<float>()));

  const Tensor c = parameter_with(tensor({1.0}));
  const Tensor d = parameter_with(tensor({kNan}));
  for (const double norm_type : {2.0, 1.0, kInfinity}) {
    c.grad().fill_(1.0);
    EXPECT_TRUE(std::isnan(clip_grad_norm_(std::vector<Tensor>{c, d}, 1.0, {.norm_type = norm_type})));
    EXPECT_TRUE(std::isnan(c.grad().item<float>())) << norm_type;
  }
}

TEST(ClipGradNorm, ANormThatIsNotFiniteCanBeAnError) {
  const Tensor a = parameter_with(tensor({1.0, kNan}));
  EXPECT_TRUE(contains(error_of<ValueError>([&] {
                         clip_grad_norm_(std::vector<Tensor>{a}, 1.0, {.error_if_nonfinite = true});
                       }),
                       "the 2-norm of all gradients is nan"));
  EXPECT_EQ(a.grad().to_vector<float>()[0], 1.0F);
}

TEST(ClipGradNorm, AnExpandedGradientIsRefusedBeforeAnotherIsScaled) {
  const Tensor a = parameter_with(tensor({3.0}));
  Tensor b = zeros({2});
  b.set_grad(tensor({4.0}).expand({2}));
  EXPECT_TRUE(contains(error_of<ShapeError>([&] {
                         clip_grad_norm_(std::vector<Tensor>{a, b}, 1.0);
                       }),
                       "clip_grad_norm_: a gradient: elements of the tensor to be written share memory"));
  EXPECT_EQ(a.grad().item<float>(), 3);
  EXPECT_NEAR(clip_grad_norm_(std::vector<Tensor>{a, b}, 100), std::sqrt(41.0), 1e-12);  // only measured
}

TEST(ClipGradNorm, NoGradientsHaveNormZero) {
  EXPECT_EQ(clip_grad_norm_(std::vector<Tensor>{zeros({3})}, 1.0), 0.0);
  EXPECT_EQ(clip_grad_norm_(std::vector<Tensor>{}, 1.0), 0.0);
}

TEST(ClipGradNorm, ArgumentsOutsideTheirDomainAreRefused) {
  const std::vector<Tensor> parameters{parameter_with(tensor({1.0}))};
  EXPECT_TRUE(contains(error_of<ValueError>([&] { clip_grad_norm_(parameters, kNan); }),
                       "max_norm must be at least 0"));
  EXPECT_TRUE(contains(error_of<ValueError>([&] { clip_grad_norm_(parameters, -1); }), "given -1"));
  EXPECT_TRUE(contains(error_of<ValueError>([&] { clip_grad_norm_(parameters, 1, {.norm_type = 0}); }),
                       "norm_type must be above 0, given 0"));
}

}  // namespace
}  // namespace tutti::optim
