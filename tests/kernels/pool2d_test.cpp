// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/backend.h"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "strided_array.hpp"

namespace {

using tutti::test::Layout;
using tutti::test::StridedArray;

constexpr Layout kNHWC = Layout::kChannelsLast, kNCHW = Layout::kContiguous, kSpread = Layout::kSpread;

struct Case {
  const char* name;
  std::int32_t dtype;
  std::int64_t n, c, h, w;
  int kernel[2], stride[2], padding[2] = {0, 0}, dilation[2] = {1, 1};
  Layout layout = kNHWC;
  bool ceil_mode = false;
  int include_pad = 0, divisor = 0;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::int64_t output_size(const Case& c, int d) {
  const std::int64_t in = d == 0 ? c.h : c.w;
  const std::int64_t span = in + 2 * c.padding[d] - c.dilation[d] * (c.kernel[d] - 1) - 1;
  std::int64_t out = (span + (c.ceil_mode ? c.stride[d] - 1 : 0)) / c.stride[d] + 1;
  if (c.ceil_mode && (out - 1) * c.stride[d] >= in + c.padding[d]) --out;
  return out;
}

struct Operands {
  explicit Operands(const Case& c)
      : oh(output_size(c, 0)),
        ow(output_size(c, 1)),
        x(c.dtype, {c.n, c.c, c.h, c.w}, c.layout),
        y(c.dtype, {c.n, c.c, oh, ow}, c.layout),
        indices(c.kernel[0] * c.kernel[1] <= 255 ? TUTTI_U8 : TUTTI_I32, {c.n, c.c, oh, ow}, c.layout) {
    x.fill_random(1);
    y.fill_random(2);
    for (int d = 0; d < 2; ++d) {
      call.kernel[d] = c.kernel[d], call.stride[d] = c.stride[d];
      call.padding[d] = c.padding[d], call.dilation[d] = c.dilation[d];
    }
    call.count_include_pad = c.include_pad;
    call.divisor_override = c.divisor;
    call.x = x.view();
    call.y = y.view();
    call.indices = indices.view();
  }
  std::int64_t oh, ow;
  StridedArray x, y, indices;
  tutti_pool2d call{};
};

// Calls body(x index, y index, place in the window) for each element of each window that lies in the image.
template <class Body>
void for_each_element(const Case& c, std::int64_t oh, std::int64_t ow, const Body& body) {
  for (std::int64_t image = 0; image < c.n * c.c; ++image)
    for (std::int64_t row = 0; row < oh; ++row)
      for (std::int64_t column = 0; column < ow; ++column)
        for (int i = 0; i < c.kernel[0]; ++i)
          for (int j = 0; j < c.kernel[1]; ++j) {
            const std::int64_t h = row * c.stride[0] - c.padding[0] + i * c.dilation[0];
            const std::int64_t w = column * c.stride[1] - c.padding[1] + j * c.dilation[1];
            if (h < 0 || h >= c.h || w < 0 || w >= c.w) continue;
            body((image * c.h + h) * c.w + w, (image * oh + row) * ow + column, i * c.kernel[1] + j);
          }
}

double divisor_of(const Case& c, std::int64_t row, std::int64_t column) {
  if (c.divisor != 0) return c.divisor;
  double product = 1;
  for (int d = 0; d < 2; ++d) {
    const std::int64_t size = d == 0 ? c.h : c.w;
    std::int64_t start = (d == 0 ? row : column) * c.stride[d] - c.padding[d];
    std::int64_t end = std::min<std::int64_t>(start + c.kernel[d], size + c.padding[d]);
    if (!c.include_pad) start = std::max<std::int64_t>(start, 0), end = std::min(end, size);
    product *= static_cast<double>(end - start);
  }
  return product;
}

class MaxPool2d : public testing::TestWithParam<Case> {};
class AveragePool2d : public testing::TestWithParam<Case> {};

TEST_P(MaxPool2d, ForwardAndBackwardMatchLoops) {
  const Case& c = GetParam();
  Operands p(c);
  const auto count = static_cast<std::size_t>(p.y.numel());
  const std::vector<double> x = p.x.values();
  ASSERT_EQ(tutti::cpu::max_pool2d_forward(&p.call), TUTTI_OK);
  std::vector<double> best(count, -std::numeric_limits<double>::infinity());
  std::vector<double> place(count, -1);
  std::vector<std::int64_t> source(count);
  for_each_element(c, p.oh, p.ow, [&](std::int64_t from, std::int64_t to, int element) {
    const auto i = static_cast<std::size_t>(to);
    if (place[i] >= 0 && x[static_cast<std::size_t>(from)] <= best[i]) return;
    best[i] = x[static_cast<std::size_t>(from)];
    place[i] = element;
    source[i] = from;
  });
  EXPECT_EQ(p.y.values(), best);
  EXPECT_EQ(p.indices.values(), place);

  p.y.fill_random(7);
  ASSERT_EQ(tutti::cpu::max_pool2d_backward(&p.call), TUTTI_OK);
  std::vector<double> gradient(static_cast<std::size_t>(p.x.numel()), 0.0);
  for (std::size_t i = 0; i < count; ++i)
    gradient[static_cast<std::size_t>(source[i])] += p.y.get(static_cast<std::int64_t>(i));
  const double rounding = 8 * tutti::test::unit_roundoff(c.dtype);
  for (std::int64_t i = 0; i < p.x.numel(); ++i) {
    ASSERT_NEAR(p.x.get(i), gradient[static_cast<std::size_t>(i)], rounding * 4) << i;
  }
}

TEST_P(MaxPool2d, WithReluGradientWindowsWithoutAPositiveElementGetNoGradient) {
  const Case& c = GetParam();
  Operands p(c);
  std::vector<double> x = p.x.values();
  for (double& value : x) value = value < 0.8 ? -value : value;  // windows of both kinds
  p.x.assign(x);
  ASSERT_EQ(tutti::cpu::max_pool2d_forward(&p.call), TUTTI_OK);
  const std::vector<double> y = p.y.values(), places = p.indices.values();
  p.y.fill_random(7);
  std::vector<double> gradient = p.y.values();
  p.call.relu_gradient = 1;
  p.y.assign(y);
  ASSERT_EQ(tutti::cpu::max_pool2d_forward(&p.call), TUTTI_OK);
  EXPECT_EQ(p.y.values(), y);
  const double none = p.call.indices.dtype == TUTTI_U8 ? 255 : -1;
  for (std::size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(p.indices.get(static_cast<std::int64_t>(i)), y[i] > 0 ? places[i] : none) << i;
  }
  p.y.assign(gradient);
  ASSERT_EQ(tutti::cpu::max_pool2d_backward(&p.call), TUTTI_OK);
  const std::vector<double> masked = p.x.values();
  for (std::size_t i = 0; i < y.size(); ++i) gradient[i] = y[i] > 0 ? gradient[i] : 0;
  p.y.assign(gradient);
  p.indices.assign(places);
  ASSERT_EQ(tutti::cpu::max_pool2d_backward(&p.call), TUTTI_OK);
  EXPECT_EQ(p.x.values(), masked);
}

TEST_P(MaxPool2d, GivesTheSameBitsForAnyNumberOfThreads) {
  Operands p(GetParam());
  tutti::test::expect_same_bits_for_all_teams(
      p.y, [&] { ASSERT_EQ(tutti::cpu::max_pool2d_forward(&p.call), TUTTI_OK); });
  tutti::test::expect_same_bits_for_all_teams(
      p.x, [&] { ASSERT_EQ(tutti::cpu::max_pool2d_backward(&p.call), TUTTI_OK); });
}

TEST_P(AveragePool2d, ForwardAndBackwardMatchLoops) {
  const Case& c = GetParam();
  Operands p(c);
  const std::vector<double> x = p.x.values(), grad_y = p.y.values();
  const double rounding = 8 * tutti::test::unit_roundoff(c.dtype);
  ASSERT_EQ(tutti::cpu::avg_pool2d_forward(&p.call), TUTTI_OK);
  std::vector<double> y(grad_y.size(), 0.0), grad_x(x.size(), 0.0), magnitude(x.size(), 0.0);
  for_each_element(c, p.oh, p.ow, [&](std::int64_t from, std::int64_t to, int) {
    const double divisor = divisor_of(c, to / p.ow % p.oh, to % p.ow);
    y[static_cast<std::size_t>(to)] += x[static_cast<std::size_t>(from)] / divisor;
    grad_x[static_cast<std::size_t>(from)] += grad_y[static_cast<std::size_t>(to)] / divisor;
    magnitude[static_cast<std::size_t>(from)] += std::abs(grad_y[static_cast<std::size_t>(to)] / divisor);
  });
  for (std::int64_t i = 0; i < p.y.numel(); ++i)
    ASSERT_NEAR(p.y.get(i), y[static_cast<std::size_t>(i)], rounding * 4) << i;
  p.y.assign(grad_y);
  ASSERT_EQ(tutti::cpu::avg_pool2d_backward(&p.call), TUTTI_OK);
  for (std::int64_t i = 0; i < p.x.numel(); ++i) {
    const double subnormal = c.dtype == TUTTI_F16 ? 0x1p-25 : 0.0;
    ASSERT_NEAR(p.x.get(i), grad_x[static_cast<std::size_t>(i)],
                rounding * magnitude[static_cast<std::size_t>(i)] + subnormal)
        << i;
  }
}

TEST_P(AveragePool2d, GivesTheSameBitsForAnyNumberOfThreads) {
  Operands p(GetParam());
  tutti::test::expect_same_bits_for_all_teams(
      p.y, [&] { ASSERT_EQ(tutti::cpu::avg_pool2d_forward(&p.call), TUTTI_OK); });
  tutti::test::expect_same_bits_for_all_teams(
      p.x, [&] { ASSERT_EQ(tutti::cpu::avg_pool2d_backward(&p.call), TUTTI_OK); });
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, MaxPool2d,
    testing::Values(Case{"lenet", TUTTI_F32, 8, 32, 28, 28, {2, 2}, {2, 2}},
                    Case{"odd", TUTTI_F32, 3, 37, 13, 11, {3, 2}, {2, 3}},
                    Case{"overlapping", TUTTI_F32, 3, 16, 13, 11, {3, 3}, {1, 2}, {1, 1}},
                    Case{"ceil", TUTTI_F32, 2, 5, 13, 11, {3, 3}, {2, 2}, {1, 1}, {1, 1}, kNHWC, true},
                    Case{"dilated", TUTTI_F32, 2, 17, 20, 21, {3, 3}, {2, 1}, {1, 1}, {2, 3}},
                    Case{"one_channel", TUTTI_F32, 2, 1, 9, 9, {2, 2}, {2, 2}},
                    Case{"large_window", TUTTI_F32, 2, 3, 20, 20, {17, 17}, {2, 2}, {3, 3}},
                    Case{"window_of_255", TUTTI_F32, 2, 3, 20, 20, {15, 17}, {15, 17}},
                    Case{"window_of_256", TUTTI_F32, 2, 3, 20, 20, {16, 16}, {16, 16}},
                    Case{"gaps", TUTTI_F32, 2, 20, 20, 20, {2, 2}, {5, 4}},
                    Case{"gaps_and_padding", TUTTI_F32, 2, 20, 21, 19, {3, 3}, {5, 4}, {1, 1}},
                    Case{"apart_and_padding", TUTTI_F32, 2, 19, 13, 12, {2, 2}, {2, 2}, {1, 1}},
                    Case{"nchw", TUTTI_F32, 3, 10, 12, 14, {2, 2}, {2, 2}, {0, 0}, {1, 1}, kNCHW},
                    Case{"spread", TUTTI_F32, 3, 10, 12, 14, {3, 3}, {2, 2}, {1, 1}, {1, 1}, kSpread},
                    Case{"f64", TUTTI_F64, 3, 21, 12, 14, {3, 3}, {2, 2}, {1, 1}},
                    Case{"f64_large_window", TUTTI_F64, 1, 9, 20, 20, {17, 17}, {2, 2}, {3, 3}},
                    Case{"f16", TUTTI_F16, 3, 21, 12, 14, {3, 3}, {2, 2}, {1, 1}},
                    Case{"bf16", TUTTI_BF16, 3, 35, 12, 14, {3, 3}, {2, 2}, {1, 1}}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, AveragePool2d,
    testing::Values(
        Case{"plain", TUTTI_F32, 8, 32, 28, 28, {2, 2}, {2, 2}},
        Case{"odd", TUTTI_F32, 3, 37, 13, 11, {3, 2}, {2, 3}},
        Case{"padding_counts", TUTTI_F32, 3, 16, 13, 11, {3, 3}, {1, 2}, {1, 1}, {1, 1}, kNHWC, false, 1},
        Case{"padding_does_not", TUTTI_F32, 3, 16, 13, 11, {3, 3}, {1, 2}, {1, 1}},
        Case{"divisor", TUTTI_F32, 3, 16, 13, 11, {3, 3}, {1, 2}, {1, 1}, {1, 1}, kNHWC, false, 1, 5},
        Case{"ceil", TUTTI_F32, 2, 5, 14, 12, {3, 3}, {2, 2}, {1, 1}, {1, 1}, kNHWC, true, 1},
        Case{"global", TUTTI_F32, 4, 65, 7, 7, {7, 7}, {1, 1}},
        Case{"nchw", TUTTI_F32, 3, 10, 12, 14, {2, 2}, {2, 2}, {0, 0}, {1, 1}, kNCHW},
        Case{"f64", TUTTI_F64, 3, 21, 12, 14, {3, 3}, {2, 2}, {1, 1}},
        Case{"f16", TUTTI_F16, 3, 21, 12, 14, {3, 3}, {2, 2}, {1, 1}},
        Case{"bf16", TUTTI_BF16, 3, 35, 12, 14, {3, 3}, {2, 2}, {1, 1}}));

TEST(Pool2dEdges, NaNWinsAndInfinitiesKeepTheirPlace) {
  Operands p(Case{"nan", TUTTI_F32, 1, 20, 4, 4, {2, 2}, {2, 2}});
  for (std::int64_t i = 0; i < p.x.numel(); ++i) p.x.set(i, -INFINITY);
  p.x.set(1, std::nan(""));  // top right of the first window
  ASSERT_EQ(tutti::cpu::max_pool2d_forward(&p.call), TUTTI_OK);
  EXPECT_TRUE(std::isnan(p.y.get(0)));
  EXPECT_EQ(p.indices.get(0), 1);
  EXPECT_EQ(p.y.get(1), -INFINITY);
  EXPECT_EQ(p.indices.get(1), 0);
}

TEST(Pool2dEdges, EmptyBatchIsDone) {
  Operands p(Case{"empty", TUTTI_F32, 0, 3, 4, 4, {2, 2}, {2, 2}});
  EXPECT_EQ(tutti::cpu::max_pool2d_forward(&p.call), TUTTI_OK);
  EXPECT_EQ(tutti::cpu::max_pool2d_backward(&p.call), TUTTI_OK);
  EXPECT_EQ(tutti::cpu::avg_pool2d_forward(&p.call), TUTTI_OK);
  EXPECT_EQ(tutti::cpu::avg_pool2d_backward(&p.call), TUTTI_OK);
}

TEST(Pool2dEdges, WindowsOutsideTheImageAreRefused) {
  Operands p(Case{"refused", TUTTI_F32, 1, 3, 4, 4, {2, 2}, {2, 2}});
  p.call.y.sizes[2] = 3;
  p.call.indices.sizes[2] = 3;
  EXPECT_EQ(tutti::cpu::max_pool2d_forward(&p.call), TUTTI_INVALID);
  Operands wide(Case{"padding", TUTTI_F32, 1, 3, 4, 4, {2, 2}, {2, 2}});
  wide.call.padding[0] = 2;
  EXPECT_EQ(tutti::cpu::avg_pool2d_forward(&wide.call), TUTTI_INVALID);
}

TEST(Pool2dEdges, IndicesOfTheWrongWidthAreRefused) {
  Operands p(Case{"indices", TUTTI_F32, 1, 3, 20, 20, {17, 17}, {1, 1}});
  p.call.indices.dtype = TUTTI_U8;
  EXPECT_EQ(tutti::cpu::max_pool2d_forward(&p.call), TUTTI_INVALID);
}

}  // namespace
