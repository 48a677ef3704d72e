// SPDX-License-Identifier: Apache-2.0
// Each pointwise functor with its formula in long double, and a call of one on arrays of any dtype and layout.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/kernels.hpp"
#include "kernels/functors/list.hpp"
#include "strided_array.hpp"

namespace tutti::test::pointwise {

using namespace functors;
using Real = long double;

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

inline Real phi(Real x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<Real>); }
inline Real normal(Real x) { return std::erfc(-x / std::sqrt(Real(2))) / 2; }
inline Real logistic(Real x) { return 1 / (1 + std::exp(-x)); }
inline Real inner(Real x) {
  return std::sqrt(2 / std::numbers::pi_v<Real>) * (x + Real(0.044715) * x * x * x);
}
inline Real inner_slope(Real x) {
  return std::sqrt(2 / std::numbers::pi_v<Real>) * (1 + 3 * Real(0.044715) * x * x);
}

inline std::vector<Row> floating_rows() {
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
inline void fill_inputs(StridedArray& array, const Row& row, std::uint32_t seed) {
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
    const double unit = unit_roundoff(dtype);
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

}  // namespace tutti::test::pointwise
