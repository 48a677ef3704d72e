// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "backend/backend.h"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "strided_array.hpp"

namespace {

using tutti::test::Layout;
using tutti::test::Sizes;
using tutti::test::StridedArray;

constexpr Layout kNHWC = Layout::kChannelsLast, kNCHW = Layout::kContiguous, kSpread = Layout::kSpread;

struct Case {
  const char* name;
  std::int32_t dtype;
  std::int64_t n, c, h, w, o, kh, kw;
  int stride = 1, padding = 0, dilation = 1, groups = 1;
  Layout images = kNHWC, weight = kNCHW;
  bool bias = true;
  std::int32_t epilogue = TUTTI_EPILOGUE_NONE;
  double beta = 0.0;
  std::int32_t precision = 0;
  std::int32_t gradient_dtype = -1;  // of the weight's gradient
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::int64_t output_size(const Case& c, std::int64_t in, std::int64_t kernel) {
  return (in + 2 * c.padding - c.dilation * (kernel - 1) - 1) / c.stride + 1;
}

struct Operands {
  explicit Operands(const Case& c, bool weight_gradient = false)
      : oh(output_size(c, c.h, c.kh)),
        ow(output_size(c, c.w, c.kw)),
        x(c.dtype, {c.n, c.c, c.h, c.w}, c.images),
        y(c.dtype, {c.n, c.o, oh, ow}, c.images),
        weight(weight_gradient && c.gradient_dtype >= 0 ? c.gradient_dtype : c.dtype,
               {c.o, c.c / c.groups, c.kh, c.kw}, c.weight),
        bias(weight.view().dtype, {c.o}) {
    x.fill_random(1);
    y.fill_random(2);
    weight.fill_random(3);
    bias.fill_random(4);
    for (int d = 0; d < 2; ++d)
      call.stride[d] = c.stride, call.padding[d] = c.padding, call.dilation[d] = c.dilation;
    call.groups = c.groups;
    call.precision = c.precision;
    call.beta = c.beta;
    call.x = x.view();
    call.y = y.view();
    call.weight.view = weight.view();
    if (c.bias) call.bias = bias.view();
  }
  std::int64_t oh, ow;
  StridedArray x, y, weight, bias;
  tutti_conv2d call{};
};

// Calls body(x index, weight index, y index) for each product of a convolution.
template <class Body>
void for_each_product(const Case& c, std::int64_t oh, std::int64_t ow, const Body& body) {
  const std::int64_t inputs = c.c / c.groups, outputs = c.o / c.groups;
  for (std::int64_t n = 0; n < c.n; ++n)
    for (std::int64_t o = 0; o < c.o; ++o)
      for (std::int64_t i = 0; i < inputs; ++i)
        for (std::int64_t kh = 0; kh < c.kh; ++kh)
          for (std::int64_t kw = 0; kw < c.kw; ++kw)
            for (std::int64_t row = 0; row < oh; ++row) {
              const std::int64_t h = row * c.stride - c.padding + kh * c.dilation;
              if (h < 0 || h >= c.h) continue;
              for (std::int64_t column = 0; column < ow; ++column) {
                const std::int64_t w = column * c.stride - c.padding + kw * c.dilation;
                if (w < 0 || w >= c.w) continue;
                const std::int64_t channel = o / outputs * inputs + i;
                body(((n * c.c + channel) * c.h + h) * c.w + w, ((o * inputs + i) * c.kh + kh) * c.kw + kw,
                     ((n * c.o + o) * oh + row) * ow + column);
              }
            }
}

struct Sum {
  std::vector<double> value, magnitude;
  std::vector<std::int64_t> terms;
  explicit Sum(std::int64_t count)
      : value(static_cast<std::size_t>(count)), magnitude(value), terms(value.size()) {}
  void add(std::int64_t index, double term) {
    const auto i = static_cast<std::size_t>(index);
    value[i] += term;
    magnitude[i] += std::abs(term);
    ++terms[i];
  }
};

double apply_epilogue(double x, std::int32_t epilogue) {
  if (epilogue == TUTTI_EPILOGUE_RELU) return x > 0 ? x : 0;
  if (epilogue == TUTTI_EPILOGUE_GELU) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  return x;
}

// Products round by `product`, sums of many terms by a few times that; the result once more by its dtype.
void expect_sum(const Case& c, const StridedArray& result, const Sum& sum, std::int32_t epilogue,
                const std::vector<double>& former) {
  const double product = c.precision == 2       ? 0x1p-8
                         : c.precision == 1     ? 0x1p-16
                         : c.dtype == TUTTI_F64 ? 0x1p-53
                                                : 0x1p-24;
  const double rounding = tutti::test::unit_roundoff(result.view().dtype);
  for (std::int64_t index = 0; index < result.numel(); ++index) {
    const auto i = static_cast<std::size_t>(index);
    const double expected = apply_epilogue(sum.value[i], epilogue) + (former.empty() ? 0.0 : former[i]);
    const double roundings = c.precision != 0 ? 2.0 : 4.0 + std::sqrt(static_cast<double>(sum.terms[i]));
    const double bound = sum.magnitude[i] * product * roundings + 2 * rounding * std::abs(expected) +
                         (epilogue == TUTTI_EPILOGUE_GELU && c.dtype != TUTTI_F64 ? 1e-6 : 0.0);
    ASSERT_NEAR(result.get(index), expected, bound) << "element " << index;
  }
}

class Conv2d : public testing::TestWithParam<Case> {};

TEST_P(Conv2d, ForwardMatchesLoopsInDouble) {
  Case c = GetParam();
  Operands p(c);
  p.call.epilogue = c.epilogue;
  ASSERT_EQ(tutti::cpu::conv2d_forward(&p.call), TUTTI_OK);
  const std::vector<double> x = p.x.values(), weight = p.weight.values();
  Sum sum(p.y.numel());
  for_each_product(c, p.oh, p.ow, [&](std::int64_t i, std::int64_t k, std::int64_t j) {
    sum.add(j, x[static_cast<std::size_t>(i)] * weight[static_cast<std::size_t>(k)]);
  });
  if (c.bias) {
    for (std::int64_t j = 0; j < p.y.numel(); ++j) sum.add(j, p.bias.get(j / (p.oh * p.ow) % c.o));
  }
  expect_sum(c, p.y, sum, c.epilogue, {});
}

TEST_P(Conv2d, BackwardDataMatchesLoopsInDouble) {
  const Case& c = GetParam();
  Operands p(c);
  ASSERT_EQ(tutti::cpu::conv2d_backward_data(&p.call), TUTTI_OK);
  const std::vector<double> y = p.y.values(), weight = p.weight.values();
  Sum sum(p.x.numel());
  for_each_product(c, p.oh, p.ow, [&](std::int64_t i, std::int64_t k, std::int64_t j) {
    sum.add(i, y[static_cast<std::size_t>(j)] * weight[static_cast<std::size_t>(k)]);
  });
  expect_sum(c, p.x, sum, TUTTI_EPILOGUE_NONE, {});
}

TEST_P(Conv2d, BackwardWeightMatchesLoopsInDouble) {
  const Case& c = GetParam();
  Operands p(c, true);
  const std::vector<double> x = p.x.values(), y = p.y.values();
  const std::vector<double> weight = p.weight.values(), bias = p.bias.values();
  ASSERT_EQ(tutti::cpu::conv2d_backward_weight(&p.call), TUTTI_OK);
  Sum sum(p.weight.numel()), bias_sum(p.bias.numel());
  for_each_product(c, p.oh, p.ow, [&](std::int64_t i, std::int64_t k, std::int64_t j) {
    sum.add(k, x[static_cast<std::size_t>(i)] * y[static_cast<std::size_t>(j)]);
  });
  for (std::int64_t j = 0; j < p.y.numel(); ++j)
    bias_sum.add(j / (p.oh * p.ow) % c.o, y[static_cast<std::size_t>(j)]);
  expect_sum(c, p.weight, sum, TUTTI_EPILOGUE_NONE, c.beta != 0.0 ? weight : std::vector<double>());
  if (c.bias)
    expect_sum(c, p.bias, bias_sum, TUTTI_EPILOGUE_NONE, c.beta != 0.0 ? bias : std::vector<double>());
}

// <conv(x), y> = <x, backward_data(y)> = <weight, backward_weight(x, y)>, whatever the loops above say.
TEST_P(Conv2d, GradientsAreAdjointToTheForward) {
  Case c = GetParam();
  c.bias = false;
  c.beta = 0.0;
  c.gradient_dtype = -1;
  Operands p(c), forward(c), data(c), gradient(c);
  forward.call.x = p.x.view(), forward.call.weight.view = p.weight.view();
  data.call.y = p.y.view(), data.call.weight.view = p.weight.view();
  gradient.call.x = p.x.view(), gradient.call.y = p.y.view();
  ASSERT_EQ(tutti::cpu::conv2d_forward(&forward.call), TUTTI_OK);
  ASSERT_EQ(tutti::cpu::conv2d_backward_data(&data.call), TUTTI_OK);
  ASSERT_EQ(tutti::cpu::conv2d_backward_weight(&gradient.call), TUTTI_OK);
  const auto inner = [](const StridedArray& a, const StridedArray& b, double& magnitude) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.numel(); ++i) {
      sum += a.get(i) * b.get(i);
      magnitude += std::abs(a.get(i) * b.get(i));
    }
    return sum;
  };
  double magnitude = 0;
  const double of_y = inner(forward.y, p.y, magnitude);
  const double of_x = inner(data.x, p.x, magnitude), of_weight = inner(gradient.weight, p.weight, magnitude);
  const double rounding =
      c.precision == 2 ? 0x1p-8 : std::max(tutti::test::unit_roundoff(c.dtype), c.precision ? 0x1p-16 : 0.0);
  EXPECT_NEAR(of_x, of_y, magnitude * rounding * 4);
  EXPECT_NEAR(of_weight, of_y, magnitude * rounding * 4);
}

TEST_P(Conv2d, GivesTheSameBitsForAnyNumberOfThreads) {
  const Case& c = GetParam();
  Operands forward(c), data(c), gradient(c, true);
  tutti::test::expect_same_bits_for_all_teams(
      forward.y, [&] { ASSERT_EQ(tutti::cpu::conv2d_forward(&forward.call), TUTTI_OK); });
  tutti::test::expect_same_bits_for_all_teams(
      data.x, [&] { ASSERT_EQ(tutti::cpu::conv2d_backward_data(&data.call), TUTTI_OK); });
  const std::vector<double> before = gradient.weight.values();
  tutti::test::expect_same_bits_for_all_teams(gradient.weight, [&] {
    gradient.weight.assign(before);
    ASSERT_EQ(tutti::cpu::conv2d_backward_weight(&gradient.call), TUTTI_OK);
  });
  tutti::test::expect_same_bits_for_all_teams(gradient.bias, [&] {
    gradient.bias.fill_random(4);
    ASSERT_EQ(tutti::cpu::conv2d_backward_weight(&gradient.call), TUTTI_OK);
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, Conv2d,
                         testing::Values(Case{"first_layer", TUTTI_F32, 20, 1, 28, 28, 32, 3, 3, 1, 1},
                                         Case{"second_layer", TUTTI_F32, 19, 32, 14, 14, 64, 3, 3, 1, 1},
                                         Case{"one_image", TUTTI_F32, 1, 3, 9, 11, 5, 3, 3, 1, 1},
                                         Case{"pointwise", TUTTI_F32, 3, 40, 13, 9, 24, 1, 1},
                                         Case{"strided", TUTTI_F32, 4, 16, 15, 17, 33, 3, 3, 2, 1},
                                         Case{"strided_beyond", TUTTI_F32, 4, 16, 16, 18, 33, 3, 3, 3, 0},
                                         Case{"stem", TUTTI_F32, 2, 3, 40, 40, 16, 7, 7, 2, 3},
                                         Case{"dilated", TUTTI_F32, 3, 8, 15, 15, 16, 3, 3, 1, 2, 2},
                                         Case{"groups", TUTTI_F32, 4, 12, 10, 10, 18, 3, 3, 1, 1, 1, 3},
                                         Case{"depthwise", TUTTI_F32, 6, 32, 12, 12, 32, 3, 3, 1, 1, 1, 32},
                                         Case{"depthwise_twice", TUTTI_F32, 2, 8, 12, 12, 16, 3, 3, 2, 1, 1,
                                              8},
                                         Case{"odd_kernel", TUTTI_F32, 2, 5, 9, 20, 7, 2, 5, 1, 2},
                                         Case{"window_is_image", TUTTI_F32, 5, 6, 4, 4, 10, 4, 4}));

INSTANTIATE_TEST_SUITE_P(
    Strides, Conv2d,
    testing::Values(Case{"nchw", TUTTI_F32, 3, 8, 10, 12, 16, 3, 3, 1, 1, 1, 1, kNCHW},
                    Case{"spread", TUTTI_F32, 3, 8, 10, 12, 16, 3, 3, 1, 1, 1, 2, kSpread, kSpread},
                    Case{"weight_nhwc", TUTTI_F32, 3, 8, 10, 12, 16, 3, 3, 1, 1, 1, 2, kNHWC, kNHWC},
                    Case{"f64_nchw", TUTTI_F64, 3, 8, 10, 12, 16, 3, 3, 1, 1, 1, 2, kNCHW, kNHWC}));

INSTANTIATE_TEST_SUITE_P(Epilogues, Conv2d,
                         testing::Values(Case{"no_bias", TUTTI_F32, 3, 8, 10, 12, 16, 3, 3, 1, 1, 1, 1, kNHWC,
                                              kNCHW, false},
                                         Case{"relu", TUTTI_F32, 9, 8, 10, 12, 16, 3, 3, 1, 1, 1, 1, kNHWC,
                                              kNCHW, true, TUTTI_EPILOGUE_RELU, 1.0},
                                         Case{"gelu", TUTTI_F32, 9, 8, 10, 12, 16, 3, 3, 1, 1, 1, 1, kNHWC,
                                              kNCHW, true, TUTTI_EPILOGUE_GELU},
                                         Case{"beta", TUTTI_F32, 9, 8, 10, 12, 16, 3, 3, 1, 1, 1, 1, kNHWC,
                                              kNHWC, true, TUTTI_EPILOGUE_NONE, 1.0}));

INSTANTIATE_TEST_SUITE_P(DTypes, Conv2d,
                         testing::Values(Case{"bf16", TUTTI_BF16, 20, 32, 14, 14, 64, 3, 3, 1, 1, 1, 1, kNHWC,
                                              kNCHW, true, TUTTI_EPILOGUE_RELU},
                                         Case{"bf16_first", TUTTI_BF16, 8, 1, 28, 28, 16, 3, 3, 1, 1},
                                         Case{"bf16_f32_gradient",
                                              TUTTI_BF16,
                                              20,
                                              16,
                                              14,
                                              14,
                                              32,
                                              3,
                                              3,
                                              1,
                                              1,
                                              1,
                                              1,
                                              kNHWC,
                                              kNCHW,
                                              true,
                                              0,
                                              1.0,
                                              0,
                                              TUTTI_F32},
                                         Case{"bf16_groups", TUTTI_BF16, 4, 12, 10, 10, 18, 3, 3, 2, 1, 1, 3,
                                              kNCHW, kNCHW, true, TUTTI_EPILOGUE_GELU},
                                         Case{"bf16_depthwise", TUTTI_BF16, 4, 32, 10, 10, 32, 3, 3, 1, 1, 1,
                                              32},
                                         Case{"f16", TUTTI_F16, 5, 8, 10, 10, 16, 3, 3, 1, 1, 1, 1, kNHWC,
                                              kNCHW, true, TUTTI_EPILOGUE_RELU, 1.0},
                                         Case{"f64", TUTTI_F64, 5, 8, 10, 10, 16, 3, 3, 2, 1, 1, 1, kNHWC,
                                              kNCHW, true, TUTTI_EPILOGUE_GELU, 1.0},
                                         Case{"f64_groups", TUTTI_F64, 5, 8, 10, 11, 16, 3, 2, 1, 2, 2, 4}));

INSTANTIATE_TEST_SUITE_P(Precision, Conv2d,
                         testing::Values(Case{"high", TUTTI_F32, 16, 32, 14, 14, 64, 3, 3, 1, 1, 1, 1, kNHWC,
                                              kNCHW, true, TUTTI_EPILOGUE_RELU, 1.0, 1},
                                         Case{"high_nchw", TUTTI_F32, 16, 40, 14, 14, 33, 3, 3, 2, 1, 1, 1,
                                              kNCHW, kNHWC, true, 0, 0.0, 1},
                                         Case{"medium", TUTTI_F32, 16, 40, 14, 14, 33, 3, 3, 2, 1, 1, 1,
                                              kNHWC, kNCHW, true, 0, 1.0, 2}));

TEST(Conv2dEdges, EmptyBatchGivesZeroGradients) {
  for (const std::int32_t dtype : {TUTTI_F32, TUTTI_F64, TUTTI_BF16}) {
    Operands p(Case{"empty", dtype, 0, 3, 8, 8, 4, 3, 3});
    EXPECT_EQ(tutti::cpu::conv2d_forward(&p.call), TUTTI_OK);
    EXPECT_EQ(tutti::cpu::conv2d_backward_data(&p.call), TUTTI_OK);
    EXPECT_EQ(tutti::cpu::conv2d_backward_weight(&p.call), TUTTI_OK);
    EXPECT_EQ(p.weight.values(), std::vector<double>(static_cast<std::size_t>(p.weight.numel()), 0.0));
    EXPECT_EQ(p.bias.values(), std::vector<double>(4, 0.0));
  }
}

TEST(Conv2dEdges, EmptyBatchLeavesAccumulatedGradientsAlone) {
  Operands p(Case{"empty", TUTTI_F32, 0, 3, 8, 8, 4, 3, 3});
  const std::vector<double> before = p.weight.values();
  p.call.beta = 1.0;
  EXPECT_EQ(tutti::cpu::conv2d_backward_weight(&p.call), TUTTI_OK);
  EXPECT_EQ(p.weight.values(), before);
}

TEST(Conv2dEdges, PackedWeightFollowsItsVersion) {
  Operands p(Case{"slot", TUTTI_F32, 4, 8, 10, 10, 16, 3, 3, 1, 1});
  tutti_packed_slot slot{};
  for (std::uint64_t version = 0; version < 3; ++version) {
    p.weight.fill_random(static_cast<std::uint32_t>(version) + 5);
    p.call.weight.slot = nullptr;
    ASSERT_EQ(tutti::cpu::conv2d_forward(&p.call), TUTTI_OK);
    const std::vector<double> y = p.y.values();
    ASSERT_EQ(tutti::cpu::conv2d_backward_data(&p.call), TUTTI_OK);
    const std::vector<double> x = p.x.values();
    p.call.weight.slot = &slot;
    p.call.weight.version = version;
    for (int use = 0; use < 2; ++use) {
      p.x.fill_random(1);
      ASSERT_EQ(tutti::cpu::conv2d_backward_data(&p.call), TUTTI_OK);
      EXPECT_EQ(p.x.values(), x);
    }
    p.x.fill_random(1);
    ASSERT_EQ(tutti::cpu::conv2d_forward(&p.call), TUTTI_OK);
    p.call.weight.slot = nullptr;
    const std::vector<double> packed = p.y.values();
    ASSERT_EQ(tutti::cpu::conv2d_forward(&p.call), TUTTI_OK);
    EXPECT_EQ(p.y.values(), packed);
    p.x.fill_random(1);
    p.y.assign(y);
  }
  slot.destroy(slot.handle);
}

TEST(Conv2dEdges, NaNPassesTheFusedRelu) {
  Operands p(Case{"nan", TUTTI_F32, 2, 8, 10, 10, 16, 3, 3, 1, 1});
  p.x.set(0, std::nan(""));
  p.call.epilogue = TUTTI_EPILOGUE_RELU;
  ASSERT_EQ(tutti::cpu::conv2d_forward(&p.call), TUTTI_OK);
  EXPECT_TRUE(std::isnan(p.y.get(0)));
  EXPECT_FALSE(std::isnan(p.y.get(5)));
}

TEST(Conv2dEdges, SizesThatDoNotFitAreRefusedWithTheShapes) {
  Operands p(Case{"refused", TUTTI_F32, 2, 8, 10, 10, 16, 3, 3});
  p.call.y.sizes[2] = 9;
  ASSERT_EQ(tutti::cpu::conv2d_forward(&p.call), TUTTI_INVALID);
  char text[1024];
  tutti::cpu::error_text(text, sizeof text);
  EXPECT_NE(std::string(text).find("[2, 8, 10, 10]"), std::string::npos) << text;
}

TEST(Conv2dEdges, IntegersAreRefused) {
  Operands p(Case{"int", TUTTI_I32, 2, 8, 10, 10, 16, 3, 3});
  EXPECT_EQ(tutti::cpu::conv2d_forward(&p.call), TUTTI_UNSUPPORTED);
}

}  // namespace
