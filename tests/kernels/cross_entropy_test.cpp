// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/strided_array.hpp"

namespace tutti::test {
namespace {

std::string last_error() {
  char text[512];
  cpu::error_text(text, sizeof text);
  return text;
}

// A call with all its arrays.
struct CrossEntropy {
  CrossEntropy(std::int32_t dtype, std::int64_t n, std::int64_t c, Layout layout = Layout::kContiguous)
      : rows(n),
        classes(c),
        number(dtype == TUTTI_F64 ? TUTTI_F64 : TUTTI_F32),
        logits(dtype, {n, c}, layout),
        targets(TUTTI_I64, {n}),
        weight(number, {c}),
        losses(number, {n}),
        row_weights(number, {n}),
        log_sum_exp(number, {n}),
        grad_losses(number, {n}),
        grad_logits(dtype, {n, c}, layout) {
    logits.fill_random(1);
    for (std::int64_t i = 0; i < n * c; ++i) logits.set(i, 3.0 * logits.get(i));
    for (std::int64_t i = 0; i < n; ++i) targets.set(i, static_cast<double>(i * 7 % c));
    for (std::int64_t i = 0; i < c; ++i) weight.set(i, 0.5 + static_cast<double>(i % 5));
    grad_losses.fill_random(2);
    call.ignore_index = -100;
    call.logits = logits.view();
    call.targets = targets.view();
    call.losses = losses.view();
    call.row_weights = row_weights.view();
    call.log_sum_exp = log_sum_exp.view();
    call.grad_losses = grad_losses.view();
    call.grad_logits = grad_logits.view();
  }

  double weight_of(std::int64_t c) const { return call.weight.data == nullptr ? 1.0 : weight.get(c); }
  double log_probability(std::int64_t row, std::int64_t c) const {
    double greatest = -1e300;
    double sum = 0.0;
    for (std::int64_t j = 0; j < classes; ++j) greatest = std::max(greatest, logits.get(row * classes + j));
    for (std::int64_t j = 0; j < classes; ++j) sum += std::exp(logits.get(row * classes + j) - greatest);
    return logits.get(row * classes + c) - greatest - std::log(sum);
  }
  // torch.nn.functional.cross_entropy's definition, term by term.
  double loss(std::int64_t row) const {
    const std::int64_t t = static_cast<std::int64_t>(targets.get(row));
    if (t == call.ignore_index) return 0.0;
    double smooth = 0.0;
    for (std::int64_t c = 0; c < classes; ++c) smooth -= weight_of(c) * log_probability(row, c);
    const double e = call.label_smoothing;
    return -(1.0 - e) * weight_of(t) * log_probability(row, t) + e / static_cast<double>(classes) * smooth;
  }
  // The same by the chain rule from log-probabilities: dloss / dx_j = sum_c dloss / dlogp_c (delta_cj - p_j).
  double gradient(std::int64_t row, std::int64_t j) const {
    const std::int64_t t = static_cast<std::int64_t>(targets.get(row));
    if (t == call.ignore_index) return 0.0;
    const double e = call.label_smoothing;
    double result = 0.0;
    const double p = std::exp(log_probability(row, j));
    for (std::int64_t c = 0; c < classes; ++c) {
      const double slope =
          -(c == t ? (1.0 - e) * weight_of(c) : 0.0) - e / static_cast<double>(classes) * weight_of(c);
      result += slope * ((c == j ? 1.0 : 0.0) - p);
    }
    const std::int64_t stride = call.grad_losses.strides[0];
    return result * grad_losses.get(stride == 0 ? 0 : row);
  }

  void check() {
    ASSERT_EQ(cpu::cross_entropy_forward(&call), TUTTI_OK) << last_error();
    ASSERT_EQ(cpu::cross_entropy_backward(&call), TUTTI_OK) << last_error();
    const double arithmetic = number == TUTTI_F64 ? 0x1p-53 : 0x1p-24;
    const double roundoff = unit_roundoff(logits.view().dtype);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t t = static_cast<std::int64_t>(targets.get(r));
      const bool ignored = t == call.ignore_index;
      ASSERT_NEAR(losses.get(r), loss(r), 200.0 * arithmetic) << "row " << r;
      ASSERT_EQ(row_weights.get(r), ignored ? 0.0 : weight_of(t)) << "row " << r;
      if (!ignored) {
        const double expected = logits.get(r * classes + t) - log_probability(r, t);
        ASSERT_NEAR(log_sum_exp.get(r), expected, 32.0 * arithmetic);
      }
      for (std::int64_t c = 0; c < classes; ++c) {
        const double expected = gradient(r, c);
        ASSERT_NEAR(grad_logits.get(r * classes + c), expected,
                    1.01 * roundoff * std::abs(expected) + 200.0 * arithmetic +
                        (logits.view().dtype == TUTTI_F16 ? 0x1p-25 : 0.0))
            << "row " << r << " class " << c;
      }
    }
  }

  std::int64_t rows, classes;
  std::int32_t number;
  StridedArray logits, targets, weight, losses, row_weights, log_sum_exp, grad_losses, grad_logits;
  tutti_cross_entropy call{};
};

TEST(CrossEntropy, AgreesWithFloat64ForEveryOption) {
  for (const std::int32_t dtype : {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16}) {
    for (const double smoothing : {0.0, 0.1}) {
      for (const bool weighted : {false, true}) {
        for (const Layout layout :
             {Layout::kContiguous, Layout::kPadded, Layout::kTransposed, Layout::kSpread}) {
          CrossEntropy c(dtype, 9, 37, layout);
          c.call.label_smoothing = smoothing;
          if (weighted) c.call.weight = c.weight.view();
          c.targets.set(4, -100.0);
          c.check();
        }
      }
    }
  }
}

TEST(CrossEntropy, TakesOneClassAndManyClasses) {
  CrossEntropy(TUTTI_F32, 3, 1).check();
  CrossEntropy(TUTTI_F32, 2, 300).check();
  CrossEntropy many(TUTTI_F32, 1, 5000);
  ASSERT_EQ(cpu::cross_entropy_forward(&many.call), TUTTI_OK);
  EXPECT_NEAR(many.losses.get(0), many.loss(0), 1e-5);
}

TEST(CrossEntropy, WeightsOfAnotherDTypeAndStrideAreTaken) {
  CrossEntropy c(TUTTI_F32, 5, 12);
  StridedArray weight(TUTTI_BF16, {12}, Layout::kSpread);  // its values are exact in bf16
  weight.assign(c.weight.values());
  c.call.weight = weight.view();
  c.check();
}

TEST(CrossEntropy, GradientOfTheMeanComesFromOneNumber) {
  CrossEntropy c(TUTTI_F32, 6, 11);
  c.call.grad_losses.strides[0] = 0;
  c.check();
}

TEST(CrossEntropy, AnIgnoredClassInsideTheRangeCountsAsIgnored) {
  CrossEntropy c(TUTTI_F32, 8, 5);
  c.call.ignore_index = 2;
  c.call.label_smoothing = 0.2;
  c.check();
}

TEST(CrossEntropy, GradientAgreesWithFiniteDifferences) {
  CrossEntropy c(TUTTI_F64, 3, 7);
  c.call.weight = c.weight.view();
  c.call.label_smoothing = 0.15;
  ASSERT_EQ(cpu::cross_entropy_forward(&c.call), TUTTI_OK);
  ASSERT_EQ(cpu::cross_entropy_backward(&c.call), TUTTI_OK);
  const double step = 1e-5;
  for (std::int64_t i = 0; i < 21; ++i) {
    const double x = c.logits.get(i);
    double change = 0.0;
    for (const double sign : {1.0, -1.0}) {
      c.logits.set(i, x + sign * step);
      ASSERT_EQ(cpu::cross_entropy_forward(&c.call), TUTTI_OK);
      change += sign * c.losses.get(i / 7) * c.grad_losses.get(i / 7);
    }
    c.logits.set(i, x);
    EXPECT_NEAR(c.grad_logits.get(i), change / (2.0 * step), 1e-8);
  }
}

TEST(CrossEntropy, LargeLogitsLoseNoDigits) {
  CrossEntropy c(TUTTI_F32, 1, 3);
  c.logits.assign({1e4, 1e4 - 2.0, 1e4 - 5.0});
  c.targets.set(0, 1.0);
  ASSERT_EQ(cpu::cross_entropy_forward(&c.call), TUTTI_OK);
  EXPECT_NEAR(c.losses.get(0), 2.0 + std::log1p(std::exp(-2.0) + std::exp(-5.0)), 1e-6);
}

TEST(CrossEntropy, ATargetOutOfRangeNamesRowTargetAndClassCount) {
  CrossEntropy c(TUTTI_F32, 5, 10);
  for (const double target : {10.0, -1.0}) {
    c.targets.set(3, target);
    EXPECT_EQ(cpu::cross_entropy_forward(&c.call), TUTTI_INVALID);
    const std::string text = last_error();
    EXPECT_NE(text.find("target " + std::to_string(static_cast<int>(target))), std::string::npos) << text;
    EXPECT_NE(text.find("row 3"), std::string::npos) << text;
    EXPECT_NE(text.find("10 classes"), std::string::npos) << text;
    EXPECT_EQ(cpu::cross_entropy_backward(&c.call), TUTTI_INVALID);
  }
}

TEST(CrossEntropy, RefusesOtherDTypesByName) {
  CrossEntropy c(TUTTI_F32, 5, 10);
  c.call.targets.dtype = TUTTI_I32;
  EXPECT_EQ(cpu::cross_entropy_forward(&c.call), TUTTI_UNSUPPORTED);
  EXPECT_NE(last_error().find("int32"), std::string::npos);
}

TEST(CrossEntropy, SameBitsForAnyNumberOfThreads) {
  CrossEntropy c(TUTTI_F32, 300, 257);
  c.call.label_smoothing = 0.1;
  expect_same_bits_for_all_teams(c.losses, [&] { ASSERT_EQ(cpu::cross_entropy_forward(&c.call), TUTTI_OK); });
  expect_same_bits_for_all_teams(c.grad_logits,
                                 [&] { ASSERT_EQ(cpu::cross_entropy_backward(&c.call), TUTTI_OK); });
}

}  // namespace
}  // namespace tutti::test
