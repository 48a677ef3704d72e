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

struct Case {
  const char* name;
  std::int32_t dtype;
  Sizes batch;
  std::int64_t m, n, k;
  Layout a = Layout::kContiguous, b = Layout::kContiguous, out = Layout::kContiguous;
  bool bias = false;
  std::int32_t epilogue = TUTTI_EPILOGUE_NONE;
  double beta = 0.0;
  std::int32_t out_dtype = -1;
  std::int32_t precision = 0;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Sizes shape(const Sizes& batch, std::int64_t rows, std::int64_t columns) {
  Sizes result = batch;
  result.push_back(rows);
  result.push_back(columns);
  return result;
}

// Operands, result and the call over them.
struct Product {
  explicit Product(const Case& c)
      : a(c.dtype, shape(c.batch, c.m, c.k), c.a),
        b(c.dtype, shape(c.batch, c.k, c.n), c.b),
        out(c.out_dtype < 0 ? c.dtype : c.out_dtype, shape(c.batch, c.m, c.n), c.out),
        bias(c.dtype, {c.n}) {
    a.fill_random(1);
    b.fill_random(2);
    bias.fill_random(3);
    out.fill_random(4);
    call.epilogue = c.epilogue;
    call.precision = c.precision;
    call.beta = c.beta;
    call.out = out.view();
    call.a = a.view();
    call.b.view = b.view();
    if (c.bias) call.bias = bias.view();
  }
  StridedArray a, b, out, bias;
  tutti_matmul call{};
};

double apply_epilogue(double x, std::int32_t epilogue) {
  if (epilogue == TUTTI_EPILOGUE_RELU) return x > 0 ? x : 0;
  if (epilogue == TUTTI_EPILOGUE_GELU) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  return x;
}

double rounding_of_products(const Case& c) {
  if (c.precision == 2) return 0x1p-8;
  if (c.precision == 1) return 0x1p-16;
  return tutti::test::unit_roundoff(c.dtype == TUTTI_F64 ? TUTTI_F64 : TUTTI_F32);
}

// Compares with plain loops in double; the bound is the one of a sum in order: k roundings of the sum of magnitudes.
void expect_product(const Case& c, const Product& p, const std::vector<double>& before) {
  const std::int64_t count = c.m * c.n;
  const double result_rounding = tutti::test::unit_roundoff(p.out.view().dtype);
  const std::vector<double> a = p.a.values(), b = p.b.values(), bias = p.bias.values();
  for (std::int64_t i = 0; i < p.out.numel(); ++i) {
    const std::int64_t matrix = i / count, row = i % count / c.n, column = i % c.n;
    double sum = 0, magnitude = 0;
    for (std::int64_t x = 0; x < c.k; ++x) {
      const double term = a[static_cast<std::size_t>((matrix * c.m + row) * c.k + x)] *
                          b[static_cast<std::size_t>((matrix * c.k + x) * c.n + column)];
      sum += term;
      magnitude += std::abs(term);
    }
    if (c.bias) sum += bias[static_cast<std::size_t>(column)];
    if (c.bias) magnitude += std::abs(bias[static_cast<std::size_t>(column)]);
    double expected = apply_epilogue(sum, c.epilogue);
    if (c.beta != 0.0) expected += before[static_cast<std::size_t>(i)];
    const double roundings = c.precision != 0 ? 2.0 : 2.0 + std::sqrt(static_cast<double>(c.k));
    const double bound = magnitude * rounding_of_products(c) * roundings +
                         std::abs(expected) * result_rounding * 2 +
                         (c.epilogue == TUTTI_EPILOGUE_GELU && c.dtype != TUTTI_F64 ? 1e-6 : 0.0);
    ASSERT_NEAR(p.out.get(i), expected, bound)
        << "matrix " << matrix << " row " << row << " column " << column;
  }
}

class Matmul : public testing::TestWithParam<Case> {};

TEST_P(Matmul, MatchesLoopsInDouble) {
  const Case& c = GetParam();
  Product p(c);
  const std::vector<double> before = p.out.values();
  ASSERT_EQ(tutti::cpu::matmul(&p.call), TUTTI_OK);
  expect_product(c, p, before);
}

TEST_P(Matmul, GivesTheSameBitsForAnyNumberOfThreads) {
  Product p(GetParam());
  const std::vector<double> before = p.out.values();
  tutti::test::expect_same_bits_for_all_teams(p.out, [&] {
    p.out.assign(before);
    ASSERT_EQ(tutti::cpu::matmul(&p.call), TUTTI_OK);
  });
}

TEST_P(Matmul, PackedWeightGivesTheSameBits) {
  Product p(GetParam());
  const std::vector<double> before = p.out.values();
  ASSERT_EQ(tutti::cpu::matmul(&p.call), TUTTI_OK);
  const std::vector<double> plain = p.out.values();
  tutti_packed_slot slot{};
  p.call.b.slot = &slot;
  for (int use = 0; use < 3; ++use) {
    p.out.assign(before);
    ASSERT_EQ(tutti::cpu::matmul(&p.call), TUTTI_OK);
    EXPECT_EQ(p.out.values(), plain) << "use " << use;
  }
  if (slot.destroy) slot.destroy(slot.handle);
}

constexpr Layout kC = Layout::kContiguous, kT = Layout::kTransposed, kP = Layout::kPadded,
                 kS = Layout::kSpread;

INSTANTIATE_TEST_SUITE_P(
    Shapes, Matmul,
    testing::Values(
        Case{"f32_tiny", TUTTI_F32, {}, 8, 8, 8}, Case{"f32_one", TUTTI_F32, {}, 1, 1, 1},
        Case{"f32_odd", TUTTI_F32, {}, 37, 41, 53}, Case{"f32_parts", TUTTI_F32, {}, 128, 512, 784},
        Case{"f32_rows_in_parts", TUTTI_F32, {}, 500, 300, 129},
        Case{"f32_deep", TUTTI_F32, {}, 16, 16, 20000}, Case{"f32_row", TUTTI_F32, {}, 1, 1000, 333},
        Case{"f32_column", TUTTI_F32, {}, 1000, 1, 333}, Case{"f32_no_depth", TUTTI_F32, {}, 5, 7, 0},
        Case{"f32_no_depth_bias", TUTTI_F32, {}, 5, 7, 0, kC, kC, kC, true, TUTTI_EPILOGUE_RELU},
        Case{"f32_batch", TUTTI_F32, {3, 4}, 33, 17, 25},
        Case{"f32_batch_large", TUTTI_F32, {2}, 400, 200, 200}));

INSTANTIATE_TEST_SUITE_P(
    Strides, Matmul,
    testing::Values(Case{"a_t", TUTTI_F32, {}, 65, 70, 129, kT, kC, kC},
                    Case{"b_t", TUTTI_F32, {}, 65, 70, 129, kC, kT, kC},
                    Case{"both_t", TUTTI_F32, {}, 65, 70, 129, kT, kT, kC},
                    Case{"out_t", TUTTI_F32, {}, 65, 70, 129, kC, kC, kT},
                    Case{"padded", TUTTI_F32, {}, 65, 70, 129, kP, kP, kP},
                    Case{"spread", TUTTI_F32, {2}, 65, 70, 129, kS, kS, kS, true, TUTTI_EPILOGUE_RELU, 1.0},
                    Case{"b_broadcast", TUTTI_F32, {3, 5}, 20, 30, 40, kC, Layout::kBroadcastBatch, kC},
                    Case{"a_broadcast", TUTTI_F32, {3, 5}, 20, 30, 40, Layout::kBroadcastBatch, kT, kC},
                    Case{"rows_in_parts_t", TUTTI_F32, {}, 500, 300, 200, kT, kT, kC},
                    Case{"tiny_t", TUTTI_F32, {4}, 5, 6, 7, kT, kS, kT},
                    Case{"weight_t", TUTTI_F32, {}, 300, 520, 600, kC, kT, kC},
                    Case{"bf16_spread", TUTTI_BF16, {2}, 65, 70, 129, kS, kS, kS},
                    Case{"bf16_t", TUTTI_BF16, {}, 65, 70, 129, kT, kT, kC},
                    Case{"f64_t", TUTTI_F64, {3}, 65, 170, 329, kT, kS, kT}));

INSTANTIATE_TEST_SUITE_P(
    Epilogues, Matmul,
    testing::Values(
        Case{"bias", TUTTI_F32, {}, 64, 96, 80, kC, kT, kC, true},
        Case{"relu", TUTTI_F32, {}, 64, 96, 80, kC, kT, kC, true, TUTTI_EPILOGUE_RELU},
        Case{"gelu", TUTTI_F32, {}, 64, 96, 80, kC, kT, kC, true, TUTTI_EPILOGUE_GELU},
        Case{"gelu_tiny", TUTTI_F32, {}, 6, 9, 8, kC, kT, kC, true, TUTTI_EPILOGUE_GELU},
        Case{"beta", TUTTI_F32, {}, 64, 96, 80, kT, kC, kC, false, TUTTI_EPILOGUE_NONE, 1.0},
        Case{"beta_parts", TUTTI_F32, {}, 500, 600, 80, kT, kC, kC, true, TUTTI_EPILOGUE_NONE, 1.0},
        Case{"relu_then_beta", TUTTI_F32, {}, 64, 96, 80, kC, kC, kC, true, TUTTI_EPILOGUE_RELU, 1.0},
        Case{"beta_tiny", TUTTI_F32, {}, 6, 7, 8, kC, kC, kC, true, TUTTI_EPILOGUE_RELU, 1.0},
        Case{"bf16_all", TUTTI_BF16, {}, 64, 96, 80, kC, kT, kC, true, TUTTI_EPILOGUE_GELU, 1.0},
        Case{"f64_all", TUTTI_F64, {}, 64, 96, 80, kC, kT, kC, true, TUTTI_EPILOGUE_GELU, 1.0}));

INSTANTIATE_TEST_SUITE_P(
    DTypes, Matmul,
    testing::Values(Case{"bf16", TUTTI_BF16, {}, 128, 512, 300}, Case{"bf16_tiny", TUTTI_BF16, {}, 3, 5, 7},
                    Case{"bf16_to_f32", TUTTI_BF16, {}, 64, 128, 784, kT, kC, kC, false, 0, 1.0, TUTTI_F32},
                    Case{"bf16_deep", TUTTI_BF16, {}, 16, 16, 20000, kC, kC, kC, false, 0, 0.0, TUTTI_F32},
                    Case{"bf16_no_depth", TUTTI_BF16, {}, 3, 5, 0, kC, kC, kC, true},
                    Case{"f16", TUTTI_F16, {}, 64, 128, 300, kC, kT, kC, true, TUTTI_EPILOGUE_RELU},
                    Case{"f16_batch", TUTTI_F16, {4}, 33, 65, 30, kT, kS, kT, true, 0, 1.0},
                    Case{"f64", TUTTI_F64, {}, 300, 200, 600}, Case{"f64_tiny", TUTTI_F64, {}, 3, 5, 7},
                    Case{"i64", TUTTI_I64, {2}, 30, 200, 60, kC, kT, kC, true, TUTTI_EPILOGUE_RELU, 1.0},
                    Case{"i32", TUTTI_I32, {}, 30, 20, 600, kT, kC, kC},
                    Case{"i16", TUTTI_I16, {}, 30, 20, 100}, Case{"i8", TUTTI_I8, {}, 7, 9, 1},
                    Case{"u8", TUTTI_U8, {}, 7, 9, 3}));

INSTANTIATE_TEST_SUITE_P(
    Precision, Matmul,
    testing::Values(
        Case{"high", TUTTI_F32, {}, 300, 520, 600, kC, kT, kC, true, TUTTI_EPILOGUE_RELU, 0.0, -1, 1},
        Case{"high_t", TUTTI_F32, {}, 520, 510, 300, kT, kC, kC, false, 0, 1.0, -1, 1},
        Case{"high_spread", TUTTI_F32, {}, 520, 510, 300, kS, kP, kT, false, 0, 1.0, -1, 1},
        Case{"high_batch", TUTTI_F32, {3}, 512, 510, 300, kT, kT, kC, false, 0, 0.0, -1, 1},
        Case{"high_batch_broadcast",
             TUTTI_F32,
             {3},
             512,
             510,
             300,
             Layout::kBroadcastBatch,
             kT,
             kC,
             false,
             0,
             0.0,
             -1,
             1},
        Case{"high_small", TUTTI_F32, {}, 30, 20, 60, kC, kC, kC, false, 0, 0.0, -1, 1},
        Case{"medium", TUTTI_F32, {}, 300, 200, 600, kC, kT, kC, true, 0, 0.0, -1, 2},
        Case{"medium_batch", TUTTI_F32, {2, 3}, 30, 200, 60, kT, kS, kT, true, 0, 1.0, -1, 2}));

TEST(MatmulEdges, EmptyResultIsLeftAlone) {
  for (const auto& [m, n] : {std::pair{0, 5}, std::pair{5, 0}, std::pair{0, 0}}) {
    Product p(Case{"empty", TUTTI_F32, {}, m, n, 4});
    EXPECT_EQ(tutti::cpu::matmul(&p.call), TUTTI_OK);
  }
}

TEST(MatmulEdges, PackedWeightFollowsItsVersion) {
  const Case c{"slot", TUTTI_F32, {}, 32, 512, 300, kC, kT};
  Product p(c);
  tutti_packed_slot slot{};
  p.call.b.slot = &slot;
  for (std::uint64_t version = 1; version < 4; ++version) {
    p.b.fill_random(static_cast<std::uint32_t>(version) + 10);
    p.call.b.version = version;
    for (int use = 0; use < 3; ++use) {
      ASSERT_EQ(tutti::cpu::matmul(&p.call), TUTTI_OK);
      expect_product(c, p, {});
    }
  }
  if (slot.destroy) slot.destroy(slot.handle);  // kept only where oneDNN's layout has a use
}

TEST(MatmulEdges, InfinityAndNaNReachTheResult) {
  for (const std::int64_t size : {6, 64}) {
    for (const std::int32_t epilogue : {TUTTI_EPILOGUE_NONE, TUTTI_EPILOGUE_RELU, TUTTI_EPILOGUE_GELU}) {
      for (const std::int32_t dtype : {TUTTI_F32, TUTTI_BF16, TUTTI_F16}) {
        Product p(Case{"nan", dtype, {}, size, size, size, kC, kC, kC, false, epilogue});
        p.a.set(0, std::nan(""));
        p.a.set(size, INFINITY);
        p.b.set(0, 1.0);
        ASSERT_EQ(tutti::cpu::matmul(&p.call), TUTTI_OK);
        EXPECT_TRUE(std::isnan(p.out.get(0)))
            << "size " << size << " epilogue " << epilogue << " dtype " << dtype;
        // oneDNN 3's gelu of infinity is NaN.
        EXPECT_TRUE(epilogue == TUTTI_EPILOGUE_GELU ? !std::isfinite(p.out.get(size))
                                                    : p.out.get(size) == INFINITY)
            << "size " << size << " epilogue " << epilogue << " dtype " << dtype;
        EXPECT_TRUE(std::isfinite(p.out.get(2 * size)))
            << "size " << size << " epilogue " << epilogue << " dtype " << dtype;
      }
    }
  }
}

TEST(MatmulEdges, ShapesThatDoNotFitAreRefusedWithBothShapes) {
  Product p(Case{"refused", TUTTI_F32, {}, 3, 4, 5});
  p.call.b.view.sizes[0] = 6;
  ASSERT_EQ(tutti::cpu::matmul(&p.call), TUTTI_INVALID);
  char text[512];
  tutti::cpu::error_text(text, sizeof text);
  EXPECT_NE(std::string(text).find("[3, 5]"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("[6, 4]"), std::string::npos) << text;
}

TEST(MatmulEdges, BoolIsRefused) {
  Product p(Case{"bool", TUTTI_BOOL, {}, 3, 4, 5});
  EXPECT_EQ(tutti::cpu::matmul(&p.call), TUTTI_UNSUPPORTED);
}

}  // namespace
