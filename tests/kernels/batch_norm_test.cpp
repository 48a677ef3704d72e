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

constexpr double kEps = 1e-5;
constexpr double kMomentum = 0.1;

// A call with all its arrays; parameters and statistics are f32, or f64 for f64 images.
struct BatchNorm {
  BatchNorm(std::int32_t dtype, const Sizes& image_sizes, Layout layout = Layout::kContiguous,
            Layout grad_layout = Layout::kContiguous)
      : sizes(image_sizes),
        channels(image_sizes[1]),
        number(dtype == TUTTI_F64 ? TUTTI_F64 : TUTTI_F32),
        x(dtype, sizes, layout),
        y(dtype, sizes, layout),
        grad_y(dtype, sizes, grad_layout),
        grad_x(dtype, sizes, layout),
        weight(number, {channels}),
        bias(number, {channels}),
        running_mean(number, {channels}),
        running_var(number, {channels}),
        save_mean(number, {channels}),
        save_invstd(number, {channels}),
        grad_weight(number, {channels}),
        grad_bias(number, {channels}) {
    x.fill_random(1);
    grad_y.fill_random(2);
    for (std::int64_t i = 0; i < x.numel(); ++i)
      x.set(i, 0.5 * static_cast<double>(channel(i)) + 2.0 * x.get(i));
    weight.fill_random(3);
    bias.fill_random(4);
    running_mean.fill_random(5);
    for (std::int64_t c = 0; c < channels; ++c) running_var.set(c, 0.5 + static_cast<double>(c % 3));
    call.momentum = kMomentum;
    call.eps = kEps;
    call.training = 1;
    call.x = x.view();
    call.y = y.view();
    call.weight = weight.view();
    call.bias = bias.view();
    call.running_mean = running_mean.view();
    call.running_var = running_var.view();
    call.save_mean = save_mean.view();
    call.save_invstd = save_invstd.view();
    call.grad_y = grad_y.view();
    call.grad_x = grad_x.view();
    call.grad_weight = grad_weight.view();
    call.grad_bias = grad_bias.view();
  }

  std::int64_t channel(std::int64_t i) const {
    std::int64_t inner = 1;
    for (std::size_t d = 2; d < sizes.size(); ++d) inner *= sizes[d];
    return i / inner % channels;
  }
  double count() const { return static_cast<double>(x.numel() / channels); }

  struct Statistics {
    std::vector<double> mean, var;
  };
  Statistics batch_statistics() const {
    Statistics s{std::vector<double>(static_cast<std::size_t>(channels)),
                 std::vector<double>(static_cast<std::size_t>(channels))};
    for (std::int64_t i = 0; i < x.numel(); ++i)
      s.mean[static_cast<std::size_t>(channel(i))] += x.get(i) / count();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const std::size_t c = static_cast<std::size_t>(channel(i));
      s.var[c] += (x.get(i) - s.mean[c]) * (x.get(i) - s.mean[c]) / count();
    }
    return s;
  }

  // Forward and backward against float64, with the statistics of the batch or the running ones.
  void check(double tolerance) {
    const bool training = call.training != 0;
    const std::vector<double> old_mean = running_mean.values();
    const std::vector<double> old_var = running_var.values();
    const Statistics s = training ? batch_statistics() : Statistics{old_mean, old_var};
    ASSERT_EQ(cpu::batch_norm_forward(&call), TUTTI_OK) << last_error();
    ASSERT_EQ(cpu::batch_norm_backward(&call), TUTTI_OK) << last_error();
    const double small = number == TUTTI_F64 ? 1e-13 : 4e-6;
    std::vector<double> sums(s.mean.size());
    std::vector<double> dots(s.mean.size());
    std::vector<double> magnitudes(s.mean.size(), 1.0);  // what the rounding of the sums scales with
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const std::size_t c = static_cast<std::size_t>(channel(i));
      sums[c] += grad_y.get(i);
      const double term = grad_y.get(i) * (x.get(i) - s.mean[c]) / std::sqrt(s.var[c] + kEps);
      dots[c] += term;
      magnitudes[c] += std::abs(term) + std::abs(grad_y.get(i));
    }
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::size_t i = static_cast<std::size_t>(c);
      const double rounding = 0.1 * small * magnitudes[i];
      if (training) {
        const double unbiased = s.var[i] * count() / (count() - 1.0);
        ASSERT_NEAR(save_mean.get(c), s.mean[i], small * (1.0 + std::abs(s.mean[i])));
        ASSERT_NEAR(save_invstd.get(c), 1.0 / std::sqrt(s.var[i] + kEps), small);
        ASSERT_NEAR(running_mean.get(c), 0.9 * old_mean[i] + 0.1 * s.mean[i],
                    small * (1.0 + std::abs(s.mean[i])));
        ASSERT_NEAR(running_var.get(c), 0.9 * old_var[i] + 0.1 * unbiased, small * (1.0 + unbiased));
      }
      ASSERT_NEAR(grad_bias.get(c), sums[i], rounding) << "channel " << c;
      ASSERT_NEAR(grad_weight.get(c), dots[i], rounding) << "channel " << c;
    }
    const double n = count();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const std::size_t c = static_cast<std::size_t>(channel(i));
      const double w = call.weight.data == nullptr ? 1.0 : weight.get(channel(i));
      const double b = call.bias.data == nullptr ? 0.0 : bias.get(channel(i));
      const double invstd = 1.0 / std::sqrt(s.var[c] + kEps);
      const double normal = (x.get(i) - s.mean[c]) * invstd;
      const double expected = normal * w + b;
      ASSERT_NEAR(y.get(i), expected, tolerance * (1.0 + std::abs(expected))) << "element " << i;
      const double through = training ? sums[c] / n + normal * dots[c] / n : 0.0;
      const double gradient = w * invstd * (grad_y.get(i) - through);
      ASSERT_NEAR(grad_x.get(i), gradient, tolerance * (1.0 + std::abs(gradient))) << "element " << i;
    }
  }

  Sizes sizes;
  std::int64_t channels;
  std::int32_t number;
  StridedArray x, y, grad_y, grad_x, weight, bias, running_mean, running_var, save_mean, save_invstd,
      grad_weight, grad_bias;
  tutti_batch_norm call{};
};

double tolerance_of(std::int32_t dtype) {
  return dtype == TUTTI_F64 ? 1e-12 : dtype == TUTTI_F32 ? 5e-6 : 1.1 * unit_roundoff(dtype) + 5e-6;
}

TEST(BatchNorm, TrainingAndEvaluationAgreeWithFloat64InEveryLayout) {
  struct Case {
    Sizes sizes;
    Layout layout, grad_layout;
  };
  const Case cases[] = {
      {{17, 5}, Layout::kContiguous, Layout::kContiguous},
      {{70, 33}, Layout::kContiguous, Layout::kTransposed},
      {{70, 33}, Layout::kTransposed, Layout::kTransposed},
      {{70, 33}, Layout::kSpread, Layout::kContiguous},
      {{4, 6, 19}, Layout::kContiguous, Layout::kContiguous},
      {{4, 6, 19}, Layout::kTransposed, Layout::kContiguous},
      {{3, 7, 5, 9}, Layout::kContiguous, Layout::kContiguous},
      {{3, 7, 5, 9}, Layout::kChannelsLast, Layout::kChannelsLast},
      {{3, 7, 5, 9}, Layout::kChannelsLast, Layout::kContiguous},
      {{3, 7, 5, 9}, Layout::kContiguous, Layout::kChannelsLast},
      {{3, 7, 5, 9}, Layout::kPadded, Layout::kSpread},
      {{4, 3, 8, 8}, Layout::kChannelsLast, Layout::kChannelsLast},
      {{5, 1, 8, 8}, Layout::kChannelsLast, Layout::kContiguous},
      {{2, 80, 6, 5}, Layout::kChannelsLast, Layout::kChannelsLast},
      {{1, 6, 4, 4}, Layout::kContiguous, Layout::kContiguous},
      {{9, 6, 1, 1}, Layout::kContiguous, Layout::kChannelsLast},
  };
  for (const std::int32_t dtype : {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16}) {
    for (const Case& c : cases) {
      for (const int training : {1, 0}) {
        SCOPED_TRACE("dtype " + std::to_string(dtype) + " dims " + std::to_string(c.sizes.size()) + " N " +
                     std::to_string(c.sizes[0]) + " layouts " + std::to_string(static_cast<int>(c.layout)) +
                     " " + std::to_string(static_cast<int>(c.grad_layout)) + " training " +
                     std::to_string(training));
        BatchNorm call(dtype, c.sizes, c.layout, c.grad_layout);
        call.call.training = training;
        call.check(tolerance_of(dtype));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(BatchNorm, LargeImagesAreCutIntoParts) {
  for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
    BatchNorm(TUTTI_F32, {6, 40, 30, 31}, layout, layout).check(5e-6);
    BatchNorm(TUTTI_F32, {2, 3, 300, 301}, layout, layout).check(5e-6);
  }
}

TEST(BatchNorm, WorksWithoutParametersAndRunningStatistics) {
  BatchNorm c(TUTTI_F32, {3, 7, 5, 9});
  c.call.weight.data = nullptr;
  c.call.bias.data = nullptr;
  c.check(5e-6);
  c.call.running_mean.data = nullptr;
  c.call.running_var.data = nullptr;
  const std::vector<double> before = c.running_mean.values();
  ASSERT_EQ(cpu::batch_norm_forward(&c.call), TUTTI_OK) << last_error();
  EXPECT_EQ(c.running_mean.values(), before);
}

TEST(BatchNorm, GradientsThatNobodyWantsAreLeftOut) {
  BatchNorm c(TUTTI_F32, {3, 7, 5, 9});
  ASSERT_EQ(cpu::batch_norm_forward(&c.call), TUTTI_OK);
  ASSERT_EQ(cpu::batch_norm_backward(&c.call), TUTTI_OK);
  const std::vector<double> weight = c.grad_weight.values();
  const std::vector<double> image = c.grad_x.values();
  c.grad_weight.assign(std::vector<double>(7, -1.0));
  c.call.grad_x.data = nullptr;
  ASSERT_EQ(cpu::batch_norm_backward(&c.call), TUTTI_OK);
  EXPECT_EQ(c.grad_weight.values(), weight);
  c.call.grad_x = c.grad_x.view();
  c.grad_x.assign(std::vector<double>(image.size(), -1.0));
  c.call.grad_weight.data = nullptr;
  c.call.grad_bias.data = nullptr;
  ASSERT_EQ(cpu::batch_norm_backward(&c.call), TUTTI_OK);
  EXPECT_EQ(c.grad_x.values(), image);
}

TEST(BatchNorm, AMeanOfTenThousandLosesNoDigits) {
  for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
    BatchNorm c(TUTTI_F32, {16, 20, 16, 16}, layout);
    for (std::int64_t i = 0; i < c.x.numel(); ++i) c.x.set(i, 1e4 + c.x.get(i));
    const BatchNorm::Statistics s = c.batch_statistics();
    ASSERT_EQ(cpu::batch_norm_forward(&c.call), TUTTI_OK);
    for (std::int64_t i = 0; i < c.x.numel(); ++i) {
      const std::size_t channel = static_cast<std::size_t>(c.channel(i));
      const double invstd = 1.0 / std::sqrt(s.var[channel] + kEps);
      const double expected =
          (c.x.get(i) - s.mean[channel]) * invstd * c.weight.get(c.channel(i)) + c.bias.get(c.channel(i));
      ASSERT_NEAR(c.y.get(i), expected, 5e-6 * (1.0 + std::abs(expected))) << "element " << i;
      ASSERT_NEAR(c.save_invstd.get(c.channel(i)), invstd, 1e-6 * invstd);
    }
  }
}

TEST(BatchNorm, MixedParametersOfTheImagesDTypeAreTaken) {
  BatchNorm c(TUTTI_BF16, {4, 6, 19});
  StridedArray weight(TUTTI_BF16, {6});
  weight.fill_random(9);
  c.weight.assign(weight.values());
  c.call.weight = weight.view();
  c.check(tolerance_of(TUTTI_BF16));
}

TEST(BatchNorm, OneValuePerChannelInTrainingIsAnError) {
  BatchNorm c(TUTTI_F32, {1, 4, 1, 1});
  EXPECT_EQ(cpu::batch_norm_forward(&c.call), TUTTI_INVALID);
  EXPECT_NE(last_error().find("Expected more than 1 value per channel when training"), std::string::npos);
  EXPECT_NE(last_error().find("[1, 4, 1, 1]"), std::string::npos) << last_error();
  c.call.training = 0;
  EXPECT_EQ(cpu::batch_norm_forward(&c.call), TUTTI_OK);
  c.call.running_var.data = nullptr;
  EXPECT_EQ(cpu::batch_norm_forward(&c.call), TUTTI_INVALID);
  EXPECT_NE(last_error().find("running_var"), std::string::npos);
}

TEST(BatchNorm, AnEmptyBatchChangesNothing) {
  BatchNorm c(TUTTI_F32, {0, 4, 3, 3});
  const std::vector<double> before = c.running_mean.values();
  c.grad_bias.assign({1, 1, 1, 1});
  ASSERT_EQ(cpu::batch_norm_forward(&c.call), TUTTI_OK);
  ASSERT_EQ(cpu::batch_norm_backward(&c.call), TUTTI_OK);
  EXPECT_EQ(c.running_mean.values(), before);
  EXPECT_EQ(c.grad_bias.values(), (std::vector<double>{0, 0, 0, 0}));
}

TEST(BatchNorm, SameBitsForAnyNumberOfThreads) {
  for (const Layout layout : {Layout::kContiguous, Layout::kChannelsLast}) {
    for (const Sizes& sizes : {Sizes{6, 40, 30, 31}, Sizes{2, 3, 300, 301}}) {
      BatchNorm c(TUTTI_F32, sizes, layout, layout);
      expect_same_bits_for_all_teams(c.y, [&] { ASSERT_EQ(cpu::batch_norm_forward(&c.call), TUTTI_OK); });
      expect_same_bits_for_all_teams(c.grad_x,
                                     [&] { ASSERT_EQ(cpu::batch_norm_backward(&c.call), TUTTI_OK); });
      expect_same_bits_for_all_teams(c.grad_weight,
                                     [&] { ASSERT_EQ(cpu::batch_norm_backward(&c.call), TUTTI_OK); });
    }
  }
}

}  // namespace
}  // namespace tutti::test
