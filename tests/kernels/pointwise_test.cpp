// SPDX-License-Identifier: Apache-2.0
// Pointwise kernels against long double formulas of the C library.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>
#include <set>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/functors/list.hpp"
#include "strided_array.hpp"

namespace tutti {
namespace {

using namespace functors;
using test::Layout;
using test::Sizes;
using test::StridedArray;
using Real = long double;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Row {
  const char* name;
  int index;
  int inputs;
  Result result;
  Takes takes;
  std::function<Real(const Real*)> reference;
  double low, high;     // domain of the inputs
  double ulps;          // of the result in f32 and f64
  double absolute = 0;  // and this many units of roundoff, where terms cancel
  double params[4] = {};
};

template <class F>
Row row(std::function<Real(const Real*)> reference, double low, double high, double ulps, double absolute = 0,
        double param = 0) {
  return {F::kName,
          index_in<F>(Pointwise{}),
          F::kInputs,
          F::kResult,
          F::kTakes,
          std::move(reference),
          low,
          high,
          ulps,
          absolute,
          {param, 0, 0, 0}};
}

Real phi(Real x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>); }
Real normal(Real x) { return std::erfc(-x / std::sqrt(Real(2))) / 2; }
Real logistic(Real x) { return 1 / (1 + std::exp(-x)); }
Real inner(Real x) { return std::sqrt(2 / std::numbers::pi_v<Real>) * (x + Real(0.044715) * x * x * x); }
Real inner_slope(Real x) {
  return std::sqrt(2 / std::numbers::pi_v<Real>) * (1 + 3 * Real(0.044715) * x * x);
}

std::vector<Row> floating_rows() {
  using R = const Real*;
  return {
      row<Add>([](R x) { return x[0] + x[1]; }, -9, 9, 0.5),
      row<Sub>([](R x) { return x[0] - x[1]; }, -9, 9, 0.5),
      row<Mul>([](R x) { return x[0] * x[1]; }, -9, 9, 0.5),
      row<Div>([](R x) { return x[0] / x[1]; }, -9, 9, 0.5),
      row<DivGradDenominator>([](R x) { return -x[0] * x[1] / (x[2] * x[2]); }, 0.5, 9, 2),
      row<AddScaled>([](R x) { return x[0] + 3 * x[1]; }, -9, 9, 1, 64, 3.0),
      row<Pow>([](R x) { return std::pow(x[0], x[1]); }, 0.1, 9, 4),
      row<PowGradBase>([](R x) { return x[0] * x[2] * std::pow(x[1], x[2] - 1); }, 1, 9, 12),
      row<PowGradExponent>([](R x) { return x[0] * std::pow(x[1], x[2]) * std::log(x[1]); }, 1.5, 9, 6),
      row<PowScalar>([](R x) { return x[0] * x[0]; }, -9, 9, 0.5, 0, 2.0),
      row<PowScalar>([](R x) { return x[0] * x[0] * x[0]; }, -9, 9, 1.5, 0, 3.0),
      row<PowScalar>([](R x) { return std::sqrt(x[0]); }, 0, 9, 0.5, 0, 0.5),
      row<PowScalar>([](R x) { return 1 / x[0]; }, 0.1, 9, 0.5, 0, -1.0),
      row<PowScalar>([](R x) { return x[0]; }, -9, 9, 0, 0, 1.0),
      row<PowScalar>([](R) { return Real(1); }, -9, 9, 0, 0, 0.0),
      row<PowScalar>([](R x) { return std::pow(x[0], Real(2.5)); }, 0, 9, 4, 0, 2.5),
      row<PowScalarGrad>([](R x) { return 2 * x[0] * x[1]; }, -9, 9, 1, 0, 2.0),
      row<PowScalarGrad>([](R x) { return 3 * x[0] * x[1] * x[1]; }, -9, 9, 2, 0, 3.0),
      row<PowScalarGrad>([](R x) { return x[0] / (2 * std::sqrt(x[1])); }, 0.1, 9, 2, 0, 0.5),
      row<PowScalarGrad>([](R x) { return -x[0] / (x[1] * x[1]); }, 0.1, 9, 2, 0, -1.0),
      row<PowScalarGrad>([](R x) { return x[0]; }, -9, 9, 0, 0, 1.0),
      row<PowScalarGrad>([](R) { return Real(0); }, -9, 9, 0, 0, 0.0),
      row<PowScalarGrad>([](R x) { return x[0] * Real(2.5) * std::pow(x[1], Real(1.5)); }, 0.1, 9, 6, 0, 2.5),
      row<Neg>([](R x) { return -x[0]; }, -9, 9, 0),
      row<Exp>([](R x) { return std::exp(x[0]); }, -20, 20, 2),
      row<Exp>([](R x) { return std::exp(x[0]); }, -104, 88, 2),
      row<Log>([](R x) { return std::log(x[0]); }, 0.001, 50, 2),
      row<Log>([](R x) { return std::log(x[0]); }, 0.9, 1.1, 3),
      row<Sqrt>([](R x) { return std::sqrt(x[0]); }, 0, 50, 0.5),
      row<SqrtGrad>([](R x) { return x[0] / (2 * x[1]); }, 0.1, 9, 1),
      row<Relu>([](R x) { return std::max(x[0], Real(0)); }, -9, 9, 0),
      row<ReluGrad>([](R x) { return x[1] <= 0 ? 0 : x[0]; }, -9, 9, 0),
      row<Sigmoid>([](R x) { return logistic(x[0]); }, -30, 30, 3),
      row<SigmoidGrad>([](R x) { return x[0] * x[1] * (1 - x[1]); }, 0, 0.9, 3),
      row<Tanh>([](R x) { return std::tanh(x[0]); }, -10, 10, 3),
      row<Tanh>([](R x) { return std::tanh(x[0]); }, -1, 1, 3),
      row<TanhGrad>([](R x) { return x[0] * (1 - x[1] * x[1]); }, -0.9, 0.9, 3, 1),
      row<Gelu>([](R x) { return x[0] * normal(x[0]); }, -4, 4, 4),
      row<Gelu>([](R x) { return x[0] * normal(x[0]); }, -13, 13, 4, 1e-6),
      row<GeluGrad>([](R x) { return x[0] * (normal(x[1]) + x[1] * phi(x[1])); }, -4, 4, 4, 8),
      row<GeluTanh>([](R x) { return x[0] * logistic(2 * inner(x[0])); }, -2, 2, 8),
      row<GeluTanh>([](R x) { return x[0] * logistic(2 * inner(x[0])); }, -8, 8, 4, 1),
      row<GeluTanhGrad>(
          [](R x) {
            const Real s = logistic(2 * inner(x[1]));
            return x[0] * (s + 2 * x[1] * s * (1 - s) * inner_slope(x[1]));
          },
          -4, 4, 4, 16),
      row<Equal>([](R x) { return Real(x[0] == x[1]); }, -3, 3, 0),
      row<NotEqual>([](R x) { return Real(x[0] != x[1]); }, -3, 3, 0),
      row<Less>([](R x) { return Real(x[0] < x[1]); }, -3, 3, 0),
      row<LessEqual>([](R x) { return Real(x[0] <= x[1]); }, -3, 3, 0),
      row<Greater>([](R x) { return Real(x[0] > x[1]); }, -3, 3, 0),
      row<GreaterEqual>([](R x) { return Real(x[0] >= x[1]); }, -3, 3, 0),
      row<LogicalNot>([](R x) { return Real(x[0] == 0); }, -3, 3, 0),
      row<IsFinite>([](R) { return Real(1); }, -3, 3, 0),
      row<IsNan>([](R) { return Real(0); }, -3, 3, 0),
      row<Where>([](R x) { return x[0] != 0 ? x[1] : x[2]; }, -3, 3, 0),
  };
}

// Uniform in the domain; comparisons and masks get few distinct values, so that equal ones meet.
void fill_inputs(StridedArray& array, const Row& row, std::uint32_t seed) {
  std::mt19937 generator(seed);
  const bool masks = row.result != Result::kSame;
  std::uniform_real_distribution<double> uniform(row.low, row.high);
  std::uniform_int_distribution<int> small(-3, 3);
  for (std::int64_t i = 0; i < array.numel(); ++i) {
    const int drawn = small(generator);
    const double value = array.view().dtype == TUTTI_BOOL ? drawn > 0 : masks ? drawn : uniform(generator);
    array.set(i, value);
  }
}

class Case {
 public:
  Case(const Row& row, std::int32_t dtype, const Sizes& sizes, Layout out_layout, std::vector<Layout> layouts)
      : row_(row),
        out_(row.result == Result::kBool ? static_cast<std::int32_t>(TUTTI_BOOL) : dtype, sizes, out_layout) {
    for (int i = 0; i < row.inputs; ++i) {
      const bool condition = row.result == Result::kWhere && i == 0;
      in_.push_back(std::make_unique<StridedArray>(condition ? static_cast<std::int32_t>(TUTTI_BOOL) : dtype,
                                                   sizes,
                                                   layouts[static_cast<std::size_t>(i) % layouts.size()]));
      fill_inputs(*in_.back(), row, static_cast<std::uint32_t>(17 + i));
      call_.in[i] = in_.back()->view();
    }
    call_.inputs = row.inputs;
    call_.scalar_input = -1;
    std::copy(std::begin(row.params), std::end(row.params), call_.params);
    call_.out = out_.view();
  }

  tutti_pointwise& call() { return call_; }
  StridedArray& out() { return out_; }
  StridedArray& in(int i) { return *in_[static_cast<std::size_t>(i)]; }
  tutti_status run() const { return cpu::pointwise_entries()[row_.index](&call_); }

  Real expected(std::int64_t i) const {
    Real x[3] = {};
    for (std::size_t k = 0; k < in_.size(); ++k) x[k] = in_[k]->get(i);
    return row_.reference(x);
  }

  void expect_right() const {
    const std::int32_t dtype = out_.view().dtype;
    const double unit = test::unit_roundoff(dtype);
    const bool half = dtype == TUTTI_F16 || dtype == TUTTI_BF16;
    const double least = dtype == TUTTI_F64 ? 0x1p-1074 : dtype == TUTTI_F16 ? 0x1p-24 : 0x1p-133;
    for (std::int64_t i = 0; i < out_.numel(); ++i) {
      const Real wanted = expected(i);
      const Real got = out_.get(i);
      if (dtype == TUTTI_F16 && std::abs(wanted) > 65000) continue;  // overflows to infinity
      // Half precision: the f32 result rounded once.
      // GELU of f64 is made of erfc, whose relative error grows with the square of its rounded argument.
      const bool wide_gelu = dtype == TUTTI_F64 && row_.index == index_in<Gelu>(Pointwise{});
      const double squares = wide_gelu ? in_[0]->get(i) * in_[0]->get(i) : 0.0;
      const double ulps = (half ? row_.ulps * 0x1p-12 + 0.51 : row_.ulps) + squares;
      const Real bound = 2 * unit * (ulps + 0.02) * std::abs(wanted) + unit * row_.absolute + 2 * least;
      ASSERT_LE(std::abs(got - wanted), bound)
          << row_.name << " of " << dtype_name(dtype) << " at " << i << ": got " << static_cast<double>(got)
          << ", wanted " << static_cast<double>(wanted) << ", input " << in_[0]->get(i);
    }
  }

 private:
  static std::string dtype_name(std::int32_t dtype) { return name(static_cast<DType>(dtype)); }

  const Row& row_;
  StridedArray out_;
  std::vector<std::unique_ptr<StridedArray>> in_;
  tutti_pointwise call_{};
};

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
