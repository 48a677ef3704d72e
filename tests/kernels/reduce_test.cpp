// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/strided_array.hpp"

namespace tutti::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

std::string last_error() {
  char text[512];
  cpu::error_text(text, sizeof text);
  return text;
}

Sizes reduced_sizes(const Sizes& sizes, std::uint32_t dims) {
  Sizes result = sizes;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (((dims >> d) & 1U) != 0U) result[d] = 1;
  }
  return result;
}

// Row-major position in the result of element `index` of the input.
std::size_t result_position(std::int64_t index, const Sizes& sizes, std::uint32_t dims) {
  std::int64_t position = 0;
  std::int64_t scale = 1;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (((dims >> d) & 1U) == 0U) {
      position += index % sizes[d] * scale;
      scale *= sizes[d];
    }
    index /= sizes[d];
  }
  return static_cast<std::size_t>(position);
}

struct Reference {
  std::vector<double> values;
  std::vector<double> magnitudes;  // sums of absolute values: what rounding errors scale with
};

Reference reference_of(const StridedArray& in, const Sizes& sizes, std::uint32_t dims, std::int32_t op) {
  const Sizes out = reduced_sizes(sizes, dims);
  const auto product = [](const Sizes& s) {
    return static_cast<std::size_t>(
        std::accumulate(s.begin(), s.end(), std::int64_t{1}, std::multiplies<>()));
  };
  const double start = op == TUTTI_AMAX   ? -kInfinity
                       : op == TUTTI_AMIN ? kInfinity
                       : op == TUTTI_PROD ? 1.0
                                          : 0.0;
  std::vector<long double> exact(product(out), start);
  Reference reference{{}, std::vector<double>(product(out), 0.0)};
  for (std::int64_t i = 0; i < in.numel(); ++i) {
    const double x = in.get(i);
    const std::size_t p = result_position(i, sizes, dims);
    long double& value = exact[p];
    const long double wide = x;
    switch (op) {
      case TUTTI_AMAX: value = std::max(value, wide); break;
      case TUTTI_AMIN: value = std::min(value, wide); break;
      case TUTTI_PROD: value *= wide; break;
      case TUTTI_SUM_SQUARES: value += wide * wide; break;
      default: value += wide;
    }
    reference.magnitudes[p] += op == TUTTI_SUM_SQUARES ? x * x : std::abs(x);
  }
  const double count = static_cast<double>(product(sizes)) / static_cast<double>(product(out));
  reference.values.assign(exact.begin(), exact.end());
  for (std::size_t i = 0; i < reference.values.size(); ++i) {
    if (op == TUTTI_MEAN) {
      reference.values[i] /= count;
      reference.magnitudes[i] /= count;
    }
    // Products run in double, one rounding a factor.
    if (op == TUTTI_PROD) reference.magnitudes[i] = count * 0x1p-29 * std::abs(reference.values[i]);
    if (op == TUTTI_AMAX || op == TUTTI_AMIN) reference.magnitudes[i] = 0.0;
  }
  return reference;
}

tutti_status run_reduce(std::int32_t op, std::uint32_t dims, StridedArray& out, StridedArray& in) {
  tutti_reduce call{};
  call.op = op;
  call.dims = dims;
  call.out = out.view();
  call.in = in.view();
  return cpu::reduce(&call);
}

void check(std::int32_t op, std::int32_t dtype, const Sizes& sizes, std::uint32_t dims, Layout layout,
           std::int32_t out_dtype) {
  StridedArray in(dtype, sizes, layout);
  in.fill_random(7);
  if (dtype == TUTTI_BOOL || op == TUTTI_PROD) {
    for (std::int64_t i = 0; i < in.numel(); ++i) {
      const double near_one = dtype <= TUTTI_BF16 ? 1.0 + 0.01 * std::sin(static_cast<double>(i)) : 1.0;
      in.set(i, dtype == TUTTI_BOOL ? static_cast<double>(i % 3 == 0) : near_one);
    }
  }
  StridedArray out(out_dtype, reduced_sizes(sizes, dims));
  ASSERT_EQ(run_reduce(op, dims, out, in), TUTTI_OK) << last_error();
  const Reference reference = reference_of(in, sizes, dims, op);
  // Sums inside of a block have some forty roundings of float; they are random, so a few units are plenty.
  const double roundoff = dtype == TUTTI_F64 && op != TUTTI_PROD ? 0x1p-53 : 0x1p-24;
  for (std::size_t i = 0; i < reference.values.size(); ++i) {
    const double expected = reference.values[i];
    const double error = dtype <= TUTTI_BF16 ? 8.0 * roundoff * reference.magnitudes[i] : 0.0;
    EXPECT_NEAR(out.get(static_cast<std::int64_t>(i)), expected,
                error + 1.01 * unit_roundoff(out_dtype) * std::abs(expected))
        << "op " << op << " dtype " << dtype << " dims " << dims << " layout " << static_cast<int>(layout)
        << " result " << i;
  }
}

constexpr std::int32_t kFloatingTypes[] = {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16};
constexpr std::int32_t kIntegerTypes[] = {TUTTI_I64, TUTTI_I32, TUTTI_I16, TUTTI_I8, TUTTI_U8, TUTTI_BOOL};
constexpr Layout kLayouts[] = {Layout::kContiguous, Layout::kTransposed,   Layout::kPadded,
                               Layout::kSpread,     Layout::kChannelsLast, Layout::kBroadcastBatch};

TEST(Reduce, AgreesWithFloat64OverAnyDimsAndStrides) {
  for (const Layout layout : kLayouts) {
    for (std::uint32_t dims = 0; dims < 16; ++dims) {
      for (const std::int32_t op :
           {TUTTI_SUM, TUTTI_MEAN, TUTTI_AMAX, TUTTI_AMIN, TUTTI_SUM_SQUARES, TUTTI_PROD}) {
        check(op, TUTTI_F32, {3, 5, 7, 19}, dims, layout, TUTTI_F32);
      }
    }
  }
}

TEST(Reduce, TakesEveryFloatingDType) {
  for (const std::int32_t dtype : kFloatingTypes) {
    for (const std::uint32_t dims : {1U, 2U, 3U}) {
      for (const Layout layout : {Layout::kContiguous, Layout::kTransposed}) {
        for (const std::int32_t op :
             {TUTTI_SUM, TUTTI_MEAN, TUTTI_AMAX, TUTTI_AMIN, TUTTI_SUM_SQUARES, TUTTI_PROD}) {
          check(op, dtype, {37, 133}, dims, layout, dtype);
        }
      }
    }
    check(TUTTI_SUM, dtype, {37, 133}, 1U, Layout::kContiguous, TUTTI_F32);
  }
}

TEST(Reduce, SumsIntegersAndBoolsExactlyInInt64) {
  for (const std::int32_t dtype : kIntegerTypes) {
    for (const std::uint32_t dims : {1U, 2U, 3U}) {
      for (const std::int32_t op : {TUTTI_SUM, TUTTI_PROD, TUTTI_SUM_SQUARES}) {
        check(op, dtype, {41, 77}, dims, Layout::kContiguous, TUTTI_I64);
      }
      for (const std::int32_t op : {TUTTI_AMAX, TUTTI_AMIN})
        check(op, dtype, {41, 77}, dims, Layout::kPadded, dtype);
      check(TUTTI_MEAN, dtype, {41, 77}, dims, Layout::kContiguous, TUTTI_F64);
    }
  }
}

TEST(Reduce, KeepsInt64ValuesThatDoubleCannotHold) {
  StridedArray in(TUTTI_I64, {2});
  StridedArray out(TUTTI_I64, {1});
  auto* values = static_cast<std::int64_t*>(in.view().data);
  values[0] = (std::int64_t{1} << 60) + 1;
  values[1] = 2;
  ASSERT_EQ(run_reduce(TUTTI_SUM, 1U, out, in), TUTTI_OK);
  EXPECT_EQ(*static_cast<std::int64_t*>(out.view().data), (std::int64_t{1} << 60) + 3);
}

TEST(Reduce, TakesEveryLengthAroundTheVectorWidths) {
  for (std::int64_t n = 1; n <= 300; ++n) {
    check(TUTTI_SUM, TUTTI_F32, {n}, 1U, Layout::kContiguous, TUTTI_F32);
    check(TUTTI_AMIN, TUTTI_BF16, {n}, 1U, Layout::kContiguous, TUTTI_BF16);
    check(TUTTI_SUM, TUTTI_F32, {13, n}, 1U, Layout::kContiguous, TUTTI_F32);
    check(TUTTI_AMAX, TUTTI_F16, {300, n}, 1U, Layout::kContiguous, TUTTI_F16);
  }
}

TEST(Reduce, BigReductionsAreCutIntoParts) {
  check(TUTTI_SUM, TUTTI_F32, {1000003}, 1U, Layout::kContiguous, TUTTI_F32);
  check(TUTTI_SUM, TUTTI_F32, {1031, 1025}, 1U, Layout::kContiguous, TUTTI_F32);
  check(TUTTI_MEAN, TUTTI_F32, {1031, 1025}, 2U, Layout::kContiguous, TUTTI_F32);
  check(TUTTI_SUM, TUTTI_F32, {70000, 9}, 1U, Layout::kContiguous, TUTTI_F32);
  check(TUTTI_SUM, TUTTI_F32, {64, 33, 15, 17}, 13U, Layout::kContiguous, TUTTI_F32);
  check(TUTTI_SUM, TUTTI_F32, {64, 33, 15, 17}, 13U, Layout::kChannelsLast, TUTTI_F32);
  check(TUTTI_AMAX, TUTTI_F32, {64, 33, 15, 17}, 13U, Layout::kChannelsLast, TUTTI_F32);
  check(TUTTI_SUM, TUTTI_I32, {1000003}, 1U, Layout::kContiguous, TUTTI_I64);
}

TEST(Reduce, FloatSumIsFarMoreExactThanALoop) {
  const std::int64_t n = 1 << 22;
  StridedArray in(TUTTI_F32, {n});
  StridedArray out(TUTTI_F32, {1});
  auto* values = static_cast<float*>(in.view().data);
  double exact = 0.0;
  for (std::int64_t i = 0; i < n; ++i) {
    values[i] = 0.1F + 1e-3F * static_cast<float>(i % 17);
    exact += static_cast<double>(values[i]);
  }
  ASSERT_EQ(run_reduce(TUTTI_SUM, 1U, out, in), TUTTI_OK);
  EXPECT_NEAR(out.get(0) / exact, 1.0, 2e-7);  // a plain loop of float is off by more than 1e-3 here
}

TEST(Reduce, NanPropagatesAndInfinitiesCount) {
  for (const std::int32_t dtype : kFloatingTypes) {
    for (const std::int64_t n : {3, 16, 129, 5000}) {
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        StridedArray in(dtype, {n});
        StridedArray out(dtype, {1});
        in.fill_random(3);
        for (const std::int32_t op : {TUTTI_AMAX, TUTTI_AMIN, TUTTI_SUM, TUTTI_MEAN}) {
          in.set(at, kNan);
          ASSERT_EQ(run_reduce(op, 1U, out, in), TUTTI_OK);
          EXPECT_TRUE(std::isnan(out.get(0)))
              << "op " << op << " dtype " << dtype << " n " << n << " at " << at;
          in.set(at, -kInfinity);
          ASSERT_EQ(run_reduce(op, 1U, out, in), TUTTI_OK);
          EXPECT_EQ(std::isinf(out.get(0)), op != TUTTI_AMAX)
              << "op " << op << " dtype " << dtype << " n " << n;
        }
      }
    }
    StridedArray in(dtype, {40, 70});
    StridedArray out(dtype, {1, 70});
    in.fill_random(3);
    in.set(17 * 70 + 65, kNan);
    ASSERT_EQ(run_reduce(TUTTI_AMAX, 1U, out, in), TUTTI_OK);
    for (std::int64_t c = 0; c < 70; ++c) EXPECT_EQ(std::isnan(out.get(c)), c == 65);
  }
}

TEST(Reduce, OfNothingIsTheIdentityOrAnError) {
  for (const std::int32_t dtype : {TUTTI_F32, TUTTI_BF16}) {
    StridedArray in(dtype, {3, 0});
    StridedArray out(dtype, {3, 1});
    ASSERT_EQ(run_reduce(TUTTI_SUM, 2U, out, in), TUTTI_OK);
    EXPECT_EQ(out.values(), (std::vector<double>{0, 0, 0}));
    ASSERT_EQ(run_reduce(TUTTI_PROD, 2U, out, in), TUTTI_OK);
    EXPECT_EQ(out.values(), (std::vector<double>{1, 1, 1}));
    ASSERT_EQ(run_reduce(TUTTI_MEAN, 2U, out, in), TUTTI_OK);
    for (const double value : out.values()) EXPECT_TRUE(std::isnan(value));
    EXPECT_EQ(run_reduce(TUTTI_AMAX, 2U, out, in), TUTTI_INVALID);
    EXPECT_NE(last_error().find("amax"), std::string::npos) << last_error();
    EXPECT_NE(last_error().find("[3, 0]"), std::string::npos) << last_error();
    StridedArray nothing(dtype, {1, 0});
    EXPECT_EQ(run_reduce(TUTTI_AMAX, 1U, nothing, in), TUTTI_OK);
  }
}

TEST(Reduce, ScalarsReduceToThemselves) {
  StridedArray in(TUTTI_F32, {});
  StridedArray out(TUTTI_F32, {});
  in.set(0, 2.5);
  ASSERT_EQ(run_reduce(TUTTI_SUM, 0U, out, in), TUTTI_OK);
  EXPECT_EQ(out.get(0), 2.5);
}

TEST(Reduce, RefusesDTypesThatMakeNoSense) {
  StridedArray in(TUTTI_I32, {4});
  StridedArray out(TUTTI_I32, {1});
  EXPECT_EQ(run_reduce(TUTTI_MEAN, 1U, out, in), TUTTI_UNSUPPORTED);
  EXPECT_NE(last_error().find("mean"), std::string::npos);
  StridedArray floats(TUTTI_F32, {4});
  EXPECT_EQ(run_reduce(TUTTI_SUM, 1U, out, floats), TUTTI_UNSUPPORTED);
  EXPECT_NE(last_error().find("float32"), std::string::npos);
}

TEST(Reduce, SameBitsForAnyNumberOfThreads) {
  struct Case {
    Sizes sizes;
    std::uint32_t dims;
    Layout layout;
  };
  for (const Case& c :
       {Case{{1000003}, 1U, Layout::kContiguous}, Case{{1031, 1025}, 1U, Layout::kContiguous},
        Case{{1031, 1025}, 2U, Layout::kContiguous}, Case{{64, 33, 15, 17}, 13U, Layout::kChannelsLast},
        Case{{64, 33, 15, 17}, 13U, Layout::kContiguous}}) {
    StridedArray in(TUTTI_F32, c.sizes, c.layout);
    in.fill_random(5);
    StridedArray out(TUTTI_F32, reduced_sizes(c.sizes, c.dims));
    expect_same_bits_for_all_teams(out, [&] { ASSERT_EQ(run_reduce(TUTTI_SUM, c.dims, out, in), TUTTI_OK); });
  }
}

// ---- positions ---------------------------------------------------------------------------------------------------------
struct ArgResult {
  std::vector<double> indices, values;
};

ArgResult run_arg_reduce(StridedArray& in, const Sizes& sizes, int dim, bool smallest) {
  const Sizes out = reduced_sizes(sizes, 1U << dim);
  StridedArray indices(TUTTI_I64, out);
  StridedArray values(in.view().dtype, out);
  tutti_arg_reduce call{};
  call.dim = dim;
  call.smallest = smallest ? 1 : 0;
  call.indices = indices.view();
  call.values = values.view();
  call.in = in.view();
  EXPECT_EQ(cpu::arg_reduce(&call), TUTTI_OK) << last_error();
  StridedArray again(TUTTI_I64, out);
  call.indices = again.view();
  call.values.data = nullptr;
  EXPECT_EQ(cpu::arg_reduce(&call), TUTTI_OK) << last_error();
  EXPECT_EQ(again.values(), indices.values());
  return {indices.values(), values.values()};
}

TEST(ArgReduce, FindsTheFirstOfEqualOnesAlongAnyDim) {
  for (const std::int32_t dtype : {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16, TUTTI_I64, TUTTI_I32,
                                   TUTTI_I16, TUTTI_I8, TUTTI_U8, TUTTI_BOOL}) {
    for (const Layout layout : {Layout::kContiguous, Layout::kTransposed, Layout::kPadded, Layout::kSpread}) {
      const Sizes sizes = {5, 67, 9};
      StridedArray in(dtype, sizes, layout);
      std::mt19937 generator(11);
      for (std::int64_t i = 0; i < in.numel(); ++i) {
        in.set(i, static_cast<double>(generator() % (dtype == TUTTI_BOOL ? 2U : 20U)));  // many are equal
      }
      for (int dim = 0; dim < 3; ++dim) {
        for (const bool smallest : {false, true}) {
          const ArgResult result = run_arg_reduce(in, sizes, dim, smallest);
          std::vector<double> best(result.values.size(), smallest ? kInfinity : -kInfinity);
          std::vector<double> where(best.size());
          std::int64_t inner = 1;
          for (int d = 2; d > dim; --d) inner *= sizes[static_cast<std::size_t>(d)];
          for (std::int64_t i = 0; i < in.numel(); ++i) {
            const std::size_t p = result_position(i, sizes, 1U << dim);
            if (smallest ? in.get(i) < best[p] : in.get(i) > best[p]) {
              best[p] = in.get(i);
              where[p] = static_cast<double>(i / inner % sizes[static_cast<std::size_t>(dim)]);
            }
          }
          EXPECT_EQ(result.indices, where) << "dtype " << dtype << " dim " << dim << " smallest " << smallest;
          EXPECT_EQ(result.values, best);
        }
      }
    }
  }
}

TEST(ArgReduce, TheFirstNanWins) {
  for (const std::int32_t dtype : kFloatingTypes) {
    StridedArray in(dtype, {300, 3});
    in.fill_random(2);
    in.set(3 * 200 + 1, kNan);
    in.set(3 * 250 + 1, kNan);
    for (const bool smallest : {false, true}) {
      const ArgResult columns = run_arg_reduce(in, {300, 3}, 0, smallest);
      EXPECT_EQ(columns.indices[1], 200.0);
      EXPECT_TRUE(std::isnan(columns.values[1]));
      EXPECT_FALSE(std::isnan(columns.values[0]));
      StridedArray row(dtype, {900});
      row.assign(in.values());
      EXPECT_EQ(run_arg_reduce(row, {900}, 0, smallest).indices[0], 601.0);
    }
  }
}

TEST(ArgReduce, OfNothingIsAnError) {
  StridedArray in(TUTTI_F32, {2, 0});
  StridedArray indices(TUTTI_I64, {2, 1});
  tutti_arg_reduce call{};
  call.dim = 1;
  call.indices = indices.view();
  call.in = in.view();
  EXPECT_EQ(cpu::arg_reduce(&call), TUTTI_INVALID);
  EXPECT_NE(last_error().find("argmax"), std::string::npos) << last_error();
}

}  // namespace
}  // namespace tutti::test
