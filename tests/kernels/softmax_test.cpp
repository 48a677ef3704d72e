// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/strided_array.hpp"

namespace tutti::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string last_error() {
  char text[512];
  cpu::error_text(text, sizeof text);
  return text;
}

// Calls body(positions) with the row-major positions of the elements of each line along dim.
template <class Body>
void for_each_line(const Sizes& sizes, int dim, const Body& body) {
  std::int64_t inner = 1;
  std::int64_t total = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    total *= sizes[d];
    if (static_cast<int>(d) > dim) inner *= sizes[d];
  }
  const std::int64_t n = sizes[static_cast<std::size_t>(dim)];
  for (std::int64_t first = 0; first < total; ++first) {
    if (first / inner % n != 0) continue;
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < n; ++i) positions.push_back(first + i * inner);
    body(positions);
  }
}

std::vector<double> softmax_in_float64(const StridedArray& in, const Sizes& sizes, int dim, bool log) {
  std::vector<double> result = in.values();
  for_each_line(sizes, dim, [&](const std::vector<std::int64_t>& line) {
    double greatest = -kInfinity;
    double sum = 0.0;
    for (const auto i : line) greatest = std::max(greatest, in.get(i));
    for (const auto i : line) sum += std::exp(in.get(i) - greatest);
    for (const auto i : line) {
      const double x = in.get(i) - greatest;
      result[static_cast<std::size_t>(i)] = log ? x - std::log(sum) : std::exp(x) / sum;
    }
  });
  return result;
}

std::vector<double> gradient_in_float64(const StridedArray& y, const StridedArray& grad, const Sizes& sizes,
                                        int dim, bool log) {
  std::vector<double> result = y.values();
  for_each_line(sizes, dim, [&](const std::vector<std::int64_t>& line) {
    double sum = 0.0;
    for (const auto i : line) sum += log ? grad.get(i) : grad.get(i) * y.get(i);
    for (const auto i : line) {
      result[static_cast<std::size_t>(i)] =
          log ? grad.get(i) - std::exp(y.get(i)) * sum : y.get(i) * (grad.get(i) - sum);
    }
  });
  return result;
}

tutti_status forward(StridedArray& out, StridedArray& in, int dim, bool log) {
  tutti_softmax call{};
  call.dim = dim;
  call.log = log ? 1 : 0;
  call.out = out.view();
  call.in = in.view();
  return cpu::softmax_forward(&call);
}
tutti_status backward(StridedArray& out, StridedArray& y, StridedArray& grad, int dim, bool log) {
  tutti_softmax call{};
  call.dim = dim;
  call.log = log ? 1 : 0;
  call.out = out.view();
  call.in = y.view();
  call.grad = grad.view();
  return cpu::softmax_backward(&call);
}

void expect_near(const StridedArray& result, const std::vector<double>& expected, double scale,
                 const std::string& what) {
  const double roundoff = unit_roundoff(result.view().dtype);
  const double arithmetic = result.view().dtype == TUTTI_F64 ? 0x1p-53 : 0x1p-24;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // Relative to the element: rounding x - max, which is up to 30, moves exp by 30 units; the rest is a few.
    const double tolerance = (roundoff + 40.0 * arithmetic) * std::abs(expected[i]) +
                             8.0 * arithmetic * scale + std::numeric_limits<float>::denorm_min() +
                             (result.view().dtype == TUTTI_F16 ? 0x1p-24 : 0.0);
    ASSERT_NEAR(result.get(static_cast<std::int64_t>(i)), expected[i], tolerance) << what << " element " << i;
  }
}

struct Case {
  Sizes sizes;
  int dim;
  Layout layout;
};
const Case kCases[] = {
    {{7}, 0, Layout::kContiguous},
    {{5, 1}, 1, Layout::kContiguous},
    {{4, 10}, 1, Layout::kContiguous},
    {{3, 1000}, 1, Layout::kPadded},
    {{9, 130}, 1, Layout::kTransposed},
    {{9, 130}, 0, Layout::kContiguous},
    {{9, 130}, 1, Layout::kSpread},
    {{130, 9}, 0, Layout::kSpread},
    {{2, 21, 5, 7}, 1, Layout::kContiguous},
    {{2, 21, 5, 7}, 1, Layout::kChannelsLast},
    {{2, 21, 5, 7}, 2, Layout::kContiguous},
    {{2, 21, 5, 7}, 3, Layout::kContiguous},
    {{2, 21, 5, 7}, 0, Layout::kChannelsLast},
    {{2, 9000}, 1, Layout::kContiguous},
    {{200, 83}, 0, Layout::kContiguous},
};

TEST(Softmax, ForwardAndBackwardAgreeWithFloat64) {
  for (const std::int32_t dtype : {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16}) {
    for (const bool log : {false, true}) {
      for (const Case& c : kCases) {
        const std::string what = "dtype " + std::to_string(dtype) + (log ? " log" : "") + " sizes " +
                                 std::to_string(c.sizes[0]) + ", ... dim " + std::to_string(c.dim) +
                                 " layout " + std::to_string(static_cast<int>(c.layout));
        StridedArray in(dtype, c.sizes, c.layout);
        StridedArray out(dtype, c.sizes, c.layout);
        in.fill_random(1);
        for (std::int64_t i = 0; i < in.numel(); ++i) in.set(i, 4.0 * in.get(i));
        ASSERT_EQ(forward(out, in, c.dim, log), TUTTI_OK) << last_error();
        expect_near(out, softmax_in_float64(in, c.sizes, c.dim, log), log ? 32.0 : 0.0, what);

        StridedArray grad(dtype, c.sizes);  // contiguous, whatever the others are
        StridedArray grad_in(dtype, c.sizes, c.layout);
        grad.fill_random(2);
        ASSERT_EQ(backward(grad_in, out, grad, c.dim, log), TUTTI_OK) << last_error();
        expect_near(grad_in, gradient_in_float64(out, grad, c.sizes, c.dim, log), log ? 64.0 : 4.0,
                    what + " backward");
      }
    }
  }
}

TEST(Softmax, ProbabilitiesKeepTheirRelativeAccuracyDownToSubnormals) {
  // exp of -104 to 0: each probability is within 4 units in the last place of float64's.
  const std::int64_t n = 4001;
  StridedArray in(TUTTI_F32, {1, n});
  StridedArray out(TUTTI_F32, {1, n});
  for (std::int64_t i = 0; i < n; ++i) in.set(i, -static_cast<double>(i) * 0.026);
  ASSERT_EQ(forward(out, in, 1, false), TUTTI_OK);
  const std::vector<double> expected = softmax_in_float64(in, {1, n}, 1, false);
  for (std::int64_t i = 0; i < n; ++i) {
    const double value = expected[static_cast<std::size_t>(i)];
    const double ulp = std::nextafter(static_cast<float>(value), 1.0F) - static_cast<float>(value);
    EXPECT_NEAR(out.get(i), value, 4.0 * ulp + 2.0 * std::numeric_limits<float>::denorm_min()) << i;
  }
}

TEST(Softmax, LargeLogitsDoNotOverflow) {
  StridedArray in(TUTTI_F32, {1, 3});
  StridedArray out(TUTTI_F32, {1, 3});
  in.assign({1e4, 1e4 - 1.0, -1e30});
  ASSERT_EQ(forward(out, in, 1, false), TUTTI_OK);
  EXPECT_NEAR(out.get(0), 1.0 / (1.0 + std::exp(-1.0)), 1e-7);
  EXPECT_EQ(out.get(2), 0.0);
}

TEST(Softmax, MinusInfinityIsMaskedAndARowOfItIsNan) {
  for (const int dim : {0, 1}) {
    for (const std::int64_t n : {3, 40}) {
      StridedArray in(TUTTI_F32, dim == 1 ? Sizes{2, n} : Sizes{n, 2});
      StridedArray out(TUTTI_F32, dim == 1 ? Sizes{2, n} : Sizes{n, 2});
      const auto at = [&](std::int64_t line, std::int64_t i) {
        return dim == 1 ? line * n + i : i * 2 + line;
      };
      for (std::int64_t i = 0; i < n; ++i) {
        in.set(at(0, i), i == 1 ? 0.5 : -kInfinity);
        in.set(at(1, i), -kInfinity);
      }
      for (const bool log : {false, true}) {
        ASSERT_EQ(forward(out, in, dim, log), TUTTI_OK);
        for (std::int64_t i = 0; i < n; ++i) {
          EXPECT_EQ(out.get(at(0, i)), i == 1 ? (log ? 0.0 : 1.0) : (log ? -kInfinity : 0.0));
          EXPECT_TRUE(std::isnan(out.get(at(1, i)))) << "dim " << dim << " n " << n << " element " << i;
        }
      }
    }
  }
}

TEST(Softmax, NanSpoilsItsRowOnly) {
  StridedArray in(TUTTI_F32, {3, 20});
  StridedArray out(TUTTI_F32, {3, 20});
  in.fill_random(4);
  in.set(25, std::numeric_limits<double>::quiet_NaN());
  ASSERT_EQ(forward(out, in, 1, false), TUTTI_OK);
  for (std::int64_t i = 0; i < 60; ++i) EXPECT_EQ(std::isnan(out.get(i)), i / 20 == 1);
}

TEST(Softmax, WorksInPlace) {
  StridedArray in(TUTTI_BF16, {4, 70});
  StridedArray out(TUTTI_BF16, {4, 70});
  in.fill_random(6);
  ASSERT_EQ(forward(out, in, 1, false), TUTTI_OK);
  ASSERT_EQ(forward(in, in, 1, false), TUTTI_OK);
  EXPECT_EQ(in.values(), out.values());
}

TEST(Softmax, TakesEmptyAndZeroDimArrays) {
  StridedArray scalar(TUTTI_F32, {});
  StridedArray out(TUTTI_F32, {});
  scalar.set(0, 3.0);
  ASSERT_EQ(forward(out, scalar, 0, false), TUTTI_OK);
  EXPECT_EQ(out.get(0), 1.0);
  StridedArray empty(TUTTI_F32, {3, 0});
  EXPECT_EQ(forward(empty, empty, 1, true), TUTTI_OK);
}

TEST(Softmax, RefusesIntegersByName) {
  StridedArray in(TUTTI_I32, {3});
  EXPECT_EQ(forward(in, in, 0, true), TUTTI_UNSUPPORTED);
  EXPECT_NE(last_error().find("log_softmax"), std::string::npos);
  EXPECT_NE(last_error().find("int32"), std::string::npos);
}

TEST(Softmax, SameBitsForAnyNumberOfThreads) {
  for (const int dim : {0, 1}) {
    StridedArray in(TUTTI_F32, {513, 771});
    StridedArray out(TUTTI_F32, {513, 771});
    in.fill_random(8);
    expect_same_bits_for_all_teams(out, [&] { ASSERT_EQ(forward(out, in, dim, false), TUTTI_OK); });
  }
}

}  // namespace
}  // namespace tutti::test
