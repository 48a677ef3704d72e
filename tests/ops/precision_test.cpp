// SPDX-License-Identifier: Apache-2.0
// set_float32_matmul_precision reaches matrix products and convolutions: each level's error against plain sums in float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/cpu/onednn/adapter.hpp"
#include "tutti/core/random.hpp"
#include "tutti/ops/ops.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {
namespace {

class Precision : public ::testing::Test {
 protected:
  ~Precision() override { set_float32_matmul_precision(MatmulPrecision::kHighest); }
};

Tensor random_numbers(const Dims& sizes, std::uint64_t seed) {
  Generator generator(seed);
  return randn(sizes, DType::kFloat32, {}, &generator);
}

Tensor at_level(MatmulPrecision level, const std::function<Tensor()>& compute) {
  set_float32_matmul_precision(level);
  return compute();
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.raw_data(), b.raw_data(), static_cast<std::size_t>(a.numel()) * a.element_size()) == 0;
}

// Large enough that every level takes effect.
constexpr std::int64_t kSide = 512;

// The largest error of the first rows of c = a b, as a fraction of the sum of |a b|.
double error_of_product(const Tensor& a, const Tensor& b, const Tensor& c) {
  const std::vector<double> left = a.to_vector<double>(), right = b.to_vector<double>(),
                            given = c.to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < 8 * kSide; ++i) {
    double sum = 0, magnitude = 0;
    for (std::size_t k = 0; k < kSide; ++k) {
      const double term = left[i / kSide * kSide + k] * right[k * kSide + i % kSide];
      sum += term;
      magnitude += std::abs(term);
    }
    worst = std::max(worst, std::abs(given[i] - sum) / magnitude);
  }
  return worst;
}

TEST_F(Precision, IsHighestUntilSetAndReadsBack) {
  EXPECT_EQ(float32_matmul_precision(), MatmulPrecision::kHighest);
  for (const MatmulPrecision level :
       {MatmulPrecision::kHigh, MatmulPrecision::kMedium, MatmulPrecision::kHighest}) {
    set_float32_matmul_precision(level);
    EXPECT_EQ(float32_matmul_precision(), level);
  }
}

TEST_F(Precision, ProductsHaveTheErrorOfTheirLevel) {
  const Tensor a = random_numbers({kSide, kSide}, 1), b = random_numbers({kSide, kSide}, 2);
  const auto product = [&] { return matmul(a, b); };
  const Tensor highest = at_level(MatmulPrecision::kHighest, product),
               high = at_level(MatmulPrecision::kHigh, product),
               medium = at_level(MatmulPrecision::kMedium, product);
  EXPECT_LT(error_of_product(a, b, highest), 0x1p-24 * (2 + std::sqrt(kSide)));
  EXPECT_LT(error_of_product(a, b, high), 0x1p-18) << "the product of two low halves is left out";
  EXPECT_LT(error_of_product(a, b, medium), 0x1p-8);
  EXPECT_EQ(same_bits(high, highest), !cpu::onednn::capabilities().amx_bf16)
      << "three products of bfloat16, or none";
  if (cpu::onednn::capabilities().bf16) {
    EXPECT_GT(error_of_product(a, b, medium), 2e-5) << "operands rounded to bfloat16";
  } else {
    EXPECT_TRUE(same_bits(medium, highest));
  }
}

TEST_F(Precision, ReachesLinearLayersConvolutionsAndTheirGradients) {
  const Tensor x = random_numbers({kSide, kSide}, 3);
  Tensor w = random_numbers({kSide, kSide}, 4).requires_grad_();
  const Tensor image = random_numbers({8, 64, 28, 28}, 5), filter = random_numbers({64, 64, 3, 3}, 6);
  const auto gradient = [&] {
    w.set_grad({});
    linear(x, w).backward(x);
    return w.grad();
  };
  const bool takes_effect = cpu::onednn::capabilities().bf16;
  const auto differs = [&](const std::function<Tensor()>& compute) {
    return !same_bits(at_level(MatmulPrecision::kMedium, compute),
                      at_level(MatmulPrecision::kHighest, compute));
  };
  EXPECT_EQ(differs([&] { return linear(x, w).detach(); }), takes_effect);
  EXPECT_EQ(differs(gradient), takes_effect);
  EXPECT_EQ(differs([&] { return conv2d(image, filter); }), takes_effect);
}

TEST_F(Precision, LeavesOtherDTypesAlone) {
  const Tensor a = random_numbers({kSide, kSide}, 1), b = random_numbers({kSide, kSide}, 2);
  for (const DType dtype : {DType::kFloat64, DType::kBFloat16}) {
    const auto product = [&] { return matmul(a.to(dtype), b.to(dtype)); };
    const Tensor highest = at_level(MatmulPrecision::kHighest, product);
    EXPECT_TRUE(same_bits(at_level(MatmulPrecision::kHigh, product), highest)) << name(dtype);
    EXPECT_TRUE(same_bits(at_level(MatmulPrecision::kMedium, product), highest)) << name(dtype);
  }
}

}  // namespace
}  // namespace tutti
