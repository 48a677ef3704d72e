// SPDX-License-Identifier: Apache-2.0
// Pointwise kernels against long double formulas of the C library.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "pointwise_case.hpp"

namespace tutti {
namespace {

using namespace functors;
using namespace test::pointwise;
using test::Layout;
using test::Sizes;
using test::StridedArray;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Pointwise, EveryFunctorMatchesItsFormulaForEveryFloatingDtypeAndLayout) {
  const std::vector<std::pair<Layout, std::vector<Layout>>> layouts = {
      {Layout::kContiguous, {Layout::kContiguous}},
      {Layout::kContiguous, {Layout::kTransposed, Layout::kContiguous}},
      {Layout::kContiguous, {Layout::kContiguous, Layout::kBroadcastBatch, Layout::kSpread}},
      {Layout::kTransposed, {Layout::kTransposed}},
      {Layout::kSpread, {Layout::kPadded, Layout::kSpread}},
  };
  std::set<int> seen;
  for (const Row& row : floating_rows()) {
    seen.insert(row.index);
    for (const std::int32_t dtype : {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16}) {
      if (row.high > 80 && dtype == TUTTI_F16) continue;
      for (const auto& [out, in] : layouts) {
        for (const Sizes& sizes : {Sizes{3, 5, 7}, Sizes{2, 33, 70}}) {
          Case test(row, dtype, sizes, out, in);
          ASSERT_EQ(test.run(), TUTTI_OK) << row.name;
          test.expect_right();
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), Pointwise::kSize) << "a functor has no row";
}

TEST(Pointwise, DenseSweepStaysWithinAFewUlp) {
  for (const Row& row : floating_rows()) {
    if (row.inputs != 1 || row.result != Result::kSame) continue;
    Case test(row, TUTTI_F32, {200, 1000}, Layout::kContiguous, {Layout::kContiguous});
    ASSERT_EQ(test.run(), TUTTI_OK);
    test.expect_right();
  }
}

TEST(Pointwise, IntegersWrapAroundAndCompareExactly) {
  for (const std::int32_t dtype : {TUTTI_I64, TUTTI_I32, TUTTI_I16, TUTTI_I8, TUTTI_U8}) {
    for (const Row& row : floating_rows()) {
      if (row.takes == Takes::kFloating || row.params[0] == 0.5 || row.params[0] == 2.5 ||
          row.params[0] == -1.0)
        continue;
      if (row.index == index_in<Pow>(Pointwise{})) continue;
      Case test(row, dtype, {5, 41}, Layout::kContiguous, {Layout::kTransposed, Layout::kContiguous});
      for (int i = 0; i < row.inputs; ++i) {
        if (test.in(i).view().dtype == dtype) test.in(i).fill_random(static_cast<std::uint32_t>(i + 3));
      }
      ASSERT_EQ(test.run(), TUTTI_OK) << row.name;
      for (std::int64_t i = 0; i < test.out().numel(); ++i) {
        const auto wanted = static_cast<std::int64_t>(test.expected(i));
        const std::int64_t wrapped = dtype == TUTTI_I64   ? wanted
                                     : dtype == TUTTI_I32 ? static_cast<std::int32_t>(wanted)
                                     : dtype == TUTTI_I16 ? static_cast<std::int16_t>(wanted)
                                     : dtype == TUTTI_I8  ? static_cast<std::int8_t>(wanted)
                                                          : static_cast<std::uint8_t>(wanted);
        ASSERT_EQ(test.out().get(i), static_cast<double>(wrapped)) << row.name << " dtype " << dtype;
      }
    }
  }
}

TEST(Pointwise, IntegerPowersOfNegativeExponentsAreTheTruncatedReciprocals) {
  const Row pow = row<Pow>(nullptr, 0, 1, 0);
  Case test(pow, TUTTI_I32, {6}, Layout::kContiguous, {Layout::kContiguous});
  test.in(0).assign({3, -2, 1, -1, -1, 2});
  test.in(1).assign({4, 3, -5, -3, -2, -1});
  ASSERT_EQ(test.run(), TUTTI_OK);
  EXPECT_EQ(test.out().values(), (std::vector<double>{81, -8, 1, -1, 1, 0}));
}

TEST(Pointwise, BoolAddsAsOrAndMultipliesAsAnd) {
  for (const bool add : {true, false}) {
    const Row either = add ? row<Add>(nullptr, 0, 1, 0) : row<Mul>(nullptr, 0, 1, 0);
    Case test(either, TUTTI_BOOL, {4}, Layout::kContiguous, {Layout::kContiguous});
    test.in(0).assign({0, 0, 1, 1});
    test.in(1).assign({0, 1, 0, 1});
    ASSERT_EQ(test.run(), TUTTI_OK);
    EXPECT_EQ(test.out().values(), (add ? std::vector<double>{0, 1, 1, 1} : std::vector<double>{0, 0, 0, 1}));
  }
}

struct Special {
  int index;
  std::vector<double> in;
  std::vector<double> wanted;
};

TEST(Pointwise, InfinitiesNanAndSubnormalsComeOutRight) {
  const double tiny = 0x1p-140;  // subnormal in f32
  const std::vector<Special> rows = {
      {index_in<Exp>(Pointwise{}),
       {kInf, -kInf, kNan, 0, 1000, -1000, -100},
       {kInf, 0, kNan, 1, kInf, 0, std::exp(-100.0)}},
      {index_in<Log>(Pointwise{}),
       {kInf, -1, kNan, 0, 1, tiny, -kInf},
       {kInf, kNan, kNan, -kInf, 0, std::log(tiny), kNan}},
      {index_in<Tanh>(Pointwise{}), {kInf, -kInf, kNan, 0, tiny, 100}, {1, -1, kNan, 0, tiny, 1}},
      {index_in<Sigmoid>(Pointwise{}), {kInf, -kInf, kNan, 0, 200, -200}, {1, 0, kNan, 0.5, 1, 0}},
      {index_in<Gelu>(Pointwise{}), {kInf, -kInf, kNan, 0, 50, -50}, {kInf, 0, kNan, 0, 50, 0}},
      {index_in<GeluTanh>(Pointwise{}), {kInf, -kInf, kNan, 0, 50, -50}, {kInf, 0, kNan, 0, 50, 0}},
      {index_in<Relu>(Pointwise{}), {kInf, -kInf, kNan, tiny, -tiny}, {kInf, 0, kNan, tiny, 0}},
      {index_in<Sqrt>(Pointwise{}), {kInf, -1, kNan, 0}, {kInf, kNan, kNan, 0}},
      {index_in<IsFinite>(Pointwise{}), {kInf, -kInf, kNan, 0, tiny}, {0, 0, 0, 1, 1}},
      {index_in<IsNan>(Pointwise{}), {kInf, -kInf, kNan, 0, tiny}, {0, 0, 1, 0, 0}},
  };
  for (const Special& special : rows) {
    const bool is_mask =
        special.index == index_in<IsFinite>(Pointwise{}) || special.index == index_in<IsNan>(Pointwise{});
    // Repeated, so that vector bodies and tails both meet each value.
    const auto repeats = static_cast<std::int64_t>(special.in.size()) * 19;
    StridedArray in(TUTTI_F32, {repeats});
    StridedArray out(is_mask ? TUTTI_BOOL : TUTTI_F32, {repeats});
    for (std::int64_t i = 0; i < repeats; ++i)
      in.set(i, special.in[static_cast<std::size_t>(i) % special.in.size()]);
    tutti_pointwise call{};
    call.inputs = 1;
    call.scalar_input = -1;
    call.out = out.view();
    call.in[0] = in.view();
    ASSERT_EQ(cpu::pointwise_entries()[special.index](&call), TUTTI_OK);
    for (std::int64_t i = 0; i < repeats; ++i) {
      const double wanted = special.wanted[static_cast<std::size_t>(i) % special.wanted.size()];
      const double got = out.get(i);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(got)) << special.index << " of " << in.get(i) << ": " << got;
      } else if (std::isinf(wanted) || wanted == 0) {
        EXPECT_EQ(got, wanted) << special.index << " of " << in.get(i);
      } else {
        EXPECT_NEAR(got, wanted, 4e-7 * std::abs(wanted) + 0x1p-149) << special.index << " of " << in.get(i);
      }
    }
  }
}

TEST(Pointwise, GradientsAtTheEdgesOfTheirDomainsAreZeroNotNan) {
  const Row base = row<PowGradBase>(nullptr, 0, 1, 0);
  Case at_zero(base, TUTTI_F32, {2}, Layout::kContiguous, {Layout::kContiguous});
  at_zero.in(0).assign({1, 1});
  at_zero.in(1).assign({0, 0});
  at_zero.in(2).assign({0, 2});
  ASSERT_EQ(at_zero.run(), TUTTI_OK);
  EXPECT_EQ(at_zero.out().values(), (std::vector<double>{0, 0}));
  const Row exponent = row<PowGradExponent>(nullptr, 0, 1, 0);
  Case log_zero(exponent, TUTTI_F64, {2}, Layout::kContiguous, {Layout::kContiguous});
  log_zero.in(0).assign({1, 1});
  log_zero.in(1).assign({0, 0});
  log_zero.in(2).assign({0, 2});
  ASSERT_EQ(log_zero.run(), TUTTI_OK);
  EXPECT_EQ(log_zero.out().values(), (std::vector<double>{0, 0}));
}

TEST(Pointwise, ANumberStandsForAnInputOnEitherSide) {
  const Row sub = row<Sub>(nullptr, -9, 9, 0);
  for (const std::int32_t dtype : {TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16, TUTTI_I64, TUTTI_I8}) {
    for (const int side : {0, 1}) {
      for (const Layout layout : {Layout::kContiguous, Layout::kSpread}) {
        Case test(sub, dtype, {3, 700}, Layout::kContiguous, {layout});
        test.call().scalar_input = side;
        test.call().scalar = {2.0, 2};
        test.call().in[side].data = nullptr;
        ASSERT_EQ(test.run(), TUTTI_OK);
        for (std::int64_t i = 0; i < test.out().numel(); ++i) {
          const double x = test.in(1 - side).get(i);
          ASSERT_NEAR(test.out().get(i), side == 0 ? 2 - x : x - 2, 8 * test::unit_roundoff(dtype) * 2)
              << dtype;
        }
      }
    }
  }
}

TEST(Pointwise, WhereTakesANumberForEitherValue) {
  const Row where = row<Where>(nullptr, -9, 9, 0);
  for (const int side : {1, 2}) {
    Case test(where, TUTTI_F32, {900}, Layout::kContiguous, {Layout::kContiguous});
    test.call().scalar_input = side;
    test.call().scalar = {7.0, 7};
    ASSERT_EQ(test.run(), TUTTI_OK);
    for (std::int64_t i = 0; i < test.out().numel(); ++i) {
      const bool first = test.in(0).get(i) != 0;
      const double other = test.in(side == 1 ? 2 : 1).get(i);
      ASSERT_EQ(test.out().get(i), first == (side == 1) ? 7.0 : other);
    }
  }
}

TEST(Pointwise, InPlaceOverwritesItsInput) {
  const Row add = row<Add>([](const Real* x) { return x[0] + x[1]; }, -9, 9, 0.5);
  for (const std::int32_t dtype : {TUTTI_F32, TUTTI_BF16}) {
    for (const Layout layout : {Layout::kContiguous, Layout::kSpread, Layout::kTransposed}) {
      Case fresh(add, dtype, {33, 1200}, layout, {layout});
      ASSERT_EQ(fresh.run(), TUTTI_OK);
      Case in_place(add, dtype, {33, 1200}, layout, {layout});
      in_place.call().out = in_place.call().in[0];
      ASSERT_EQ(in_place.run(), TUTTI_OK);
      EXPECT_EQ(in_place.in(0).values(), fresh.out().values());
    }
  }
}

TEST(Pointwise, EmptyAndZeroDimensionalViewsWork) {
  const Row add = row<Add>([](const Real* x) { return x[0] + x[1]; }, -9, 9, 0.5);
  Case empty(add, TUTTI_F32, {3, 0, 2}, Layout::kContiguous, {Layout::kContiguous});
  EXPECT_EQ(empty.run(), TUTTI_OK);
  Case scalar(add, TUTTI_F16, {}, Layout::kContiguous, {Layout::kContiguous});
  ASSERT_EQ(scalar.run(), TUTTI_OK);
  scalar.expect_right();
}

TEST(Pointwise, ResultsAreBitEqualForAnyNumberOfThreads) {
  for (const Row& row : floating_rows()) {
    for (const Layout layout : {Layout::kContiguous, Layout::kTransposed}) {
      Case test(row, TUTTI_F32, {350, 257}, Layout::kContiguous, {layout, Layout::kContiguous});
      test::expect_same_bits_for_all_teams(test.out(), [&] { ASSERT_EQ(test.run(), TUTTI_OK); });
    }
  }
}

std::string text_of(const tutti_pointwise& call, int index, tutti_status wanted) {
  EXPECT_EQ(cpu::pointwise_entries()[index](&call), wanted);
  char text[256];
  cpu::error_text(text, sizeof text);
  return text;
}

TEST(Pointwise, DtypesThatDoNotFitAreNamed) {
  const Row div = row<Div>(nullptr, -9, 9, 0);
  Case integers(div, TUTTI_I32, {3}, Layout::kContiguous, {Layout::kContiguous});
  EXPECT_EQ(text_of(integers.call(), div.index, TUTTI_UNSUPPORTED), "div: there is no kernel for int32");
  Case mixed(div, TUTTI_F32, {3}, Layout::kContiguous, {Layout::kContiguous});
  mixed.call().in[1].dtype = TUTTI_F16;
  EXPECT_EQ(text_of(mixed.call(), div.index, TUTTI_UNSUPPORTED),
            "div: wanted float32 as input 1, given float16");
  const Row less = row<Less>(nullptr, -9, 9, 0);
  Case result(less, TUTTI_F32, {3}, Layout::kContiguous, {Layout::kContiguous});
  result.call().out.dtype = TUTTI_U8;
  EXPECT_EQ(text_of(result.call(), less.index, TUTTI_UNSUPPORTED),
            "less: wanted bool as result, given uint8");
}

}  // namespace
}  // namespace tutti
