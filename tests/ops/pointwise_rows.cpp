// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/op_row.hpp"
#include "tutti/ops/ops.hpp"

namespace tutti::testing {

namespace {

using In = std::span<const Tensor>;
using Arrays = std::span<const Array>;

OpRow unary(const char* name, Tensor (*op)(const Tensor&), double (*f)(double),
            Values values = Values::kNormal, Takes takes = Takes::kFloating) {
  return {name,
          [op](In in) { return op(in[0]); },
          [f](Arrays in) { return map(in[0], f); },
          unary_cases(values),
          takes,
          true,
          4e-6,
          {{{70, 1001}, values}}};
}
OpRow binary(const char* name, Tensor (*op)(const Tensor&, const Tensor&), double (*f)(double, double),
             Values first = Values::kNormal, Values second = Values::kNormal,
             Takes takes = Takes::kFloating) {
  return {name,
          [op](In in) { return op(in[0], in[1]); },
          [f](Arrays in) { return zip(in[0], in[1], f); },
          binary_cases(first, second),
          takes,
          true,
          4e-6,
          {{{70, 1001}, first}, {{1001}, second}}};
}
OpRow with_number(const char* name, std::function<Tensor(const Tensor&)> op, std::function<double(double)> f,
                  Values values = Values::kNormal, Takes takes = Takes::kAll) {
  return {name,
          [op](In in) { return op(in[0]); },
          [f](Arrays in) { return map(in[0], f); },
          unary_cases(values),
          takes,
          true,
          4e-6,
          {{{70, 1001}, values}}};
}
OpRow comparison(const char* name, Tensor (*op)(const Tensor&, const Tensor&), double (*f)(double, double)) {
  OpRow row = binary(name, op, f, Values::kNormal, Values::kNormal, Takes::kAll);
  row.differentiable = false;
  return row;
}
OpRow mask(const char* name, Tensor (*op)(const Tensor&), double (*f)(double)) {
  OpRow row = unary(name, op, f, Values::kNormal, Takes::kAll);
  row.differentiable = false;
  return row;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// In place: on a copy, so that the input stays.
OpRow in_place(const char* name, std::function<void(Tensor&, In)> op, std::function<Array(Arrays)> reference,
               std::vector<std::vector<Input>> cases, std::vector<Input> large, Takes takes) {
  return {name,
          [op](In in) {
            Tensor y = in[0].clone();
            op(y, in);
            return y;
          },
          std::move(reference),
          std::move(cases),
          takes,
          true,
          4e-6,
          std::move(large)};
}
std::vector<std::vector<Input>> in_place_cases(Values first, Values second) {
  return {{{{3, 5}, first}, {{3, 5}, second}},
          {{{2, 3, 17}, first}, {{17}, second}},
          {{{4}, first}, {{}, second}},
          {{{0, 3}, first}, {{3}, second}}};
}

}  // namespace

std::vector<OpRow> pointwise_rows() {
  std::vector<OpRow> rows = {
      binary(
          "add", [](const Tensor& a, const Tensor& b) { return add(a, b); },
          [](double a, double b) { return a + b; }, Values::kNormal, Values::kNormal, Takes::kAll),
      binary(
          "add-alpha", [](const Tensor& a, const Tensor& b) { return add(a, b, 0.25); },
          [](double a, double b) { return a + 0.25 * b; }),
      binary(
          "sub", [](const Tensor& a, const Tensor& b) { return sub(a, b); },
          [](double a, double b) { return a - b; }, Values::kNormal, Values::kNormal, Takes::kNumeric),
      binary(
          "mul", [](const Tensor& a, const Tensor& b) { return mul(a, b); },
          [](double a, double b) { return a * b; }, Values::kNormal, Values::kNormal, Takes::kAll),
      binary(
          "div", [](const Tensor& a, const Tensor& b) { return div(a, b); },
          [](double a, double b) { return a / b; }, Values::kNormal, Values::kPositive, Takes::kAll),
      binary(
          "pow", [](const Tensor& a, const Tensor& b) { return pow(a, b); },
          [](double a, double b) { return std::pow(a, b); }, Values::kPositive, Values::kNormal,
          Takes::kNumeric),
      with_number(
          "add-number", [](const Tensor& x) { return x + 1.5; }, [](double x) { return x + 1.5; }),
      with_number(
          "sub-number", [](const Tensor& x) { return x - 1.5; }, [](double x) { return x - 1.5; },
          Values::kNormal, Takes::kNumeric),
      with_number(
          "sub-from-number", [](const Tensor& x) { return 1.5 - x; }, [](double x) { return 1.5 - x; },
          Values::kNormal, Takes::kNumeric),
      with_number(
          "mul-number", [](const Tensor& x) { return 1.5 * x; }, [](double x) { return 1.5 * x; }),
      with_number(
          "div-number", [](const Tensor& x) { return x / 3; }, [](double x) { return x / 3; }),
      with_number(
          "div-of-number", [](const Tensor& x) { return 3 / x; }, [](double x) { return 3 / x; },
          Values::kPositive),
      with_number(
          "pow-2", [](const Tensor& x) { return pow(x, 2); }, [](double x) { return x * x; }),
      with_number(
          "pow-3", [](const Tensor& x) { return pow(x, 3); }, [](double x) { return x * x * x; }),
      with_number(
          "pow-half", [](const Tensor& x) { return pow(x, 0.5); }, [](double x) { return std::sqrt(x); },
          Values::kPositive),
      with_number(
          "pow-minus-1.7", [](const Tensor& x) { return pow(x, -1.7); },
          [](double x) { return std::pow(x, -1.7); }, Values::kPositive),
      unary(
          "neg", neg, [](double x) { return -x; }, Values::kNormal, Takes::kNumeric),
      unary(
          "exp", exp, [](double x) { return std::exp(x); }, Values::kNormal, Takes::kAll),
      unary(
          "log", log, [](double x) { return std::log(x); }, Values::kPositive, Takes::kAll),
      unary(
          "sqrt", sqrt, [](double x) { return std::sqrt(x); }, Values::kPositive, Takes::kAll),
      unary(
          "tanh", tanh, [](double x) { return std::tanh(x); }, Values::kNormal, Takes::kAll),
      unary(
          "sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, Values::kNormal, Takes::kAll),
      unary(
          "relu", relu, [](double x) { return x > 0 ? x : 0; }, Values::kNormal, Takes::kNumeric),
      unary(
          "gelu", [](const Tensor& x) { return gelu(x); }, [](double x) { return x * normal_cdf(x); }),
      unary(
          "gelu-tanh", [](const Tensor& x) { return gelu(x, GeluForm::kTanh); },
          [](double x) {
            return 0.5 * x *
                   (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
          }),
      comparison(
          "eq", [](const Tensor& a, const Tensor& b) { return eq(a, b); },
          [](double a, double b) { return a == b ? 1. : 0; }),
      comparison(
          "ne", [](const Tensor& a, const Tensor& b) { return ne(a, b); },
          [](double a, double b) { return a != b ? 1. : 0; }),
      comparison(
          "lt", [](const Tensor& a, const Tensor& b) { return lt(a, b); },
          [](double a, double b) { return a < b ? 1. : 0; }),
      comparison(
          "le", [](const Tensor& a, const Tensor& b) { return le(a, b); },
          [](double a, double b) { return a <= b ? 1. : 0; }),
      comparison(
          "gt", [](const Tensor& a, const Tensor& b) { return gt(a, b); },
          [](double a, double b) { return a > b ? 1. : 0; }),
      comparison(
          "ge", [](const Tensor& a, const Tensor& b) { return ge(a, b); },
          [](double a, double b) { return a >= b ? 1. : 0; }),
      mask(
          "gt-number", [](const Tensor& x) { return x > 0; }, [](double x) { return x > 0 ? 1. : 0; }),
      mask(
          "le-number", [](const Tensor& x) { return x <= 0; }, [](double x) { return x <= 0 ? 1. : 0; }),
      mask("logical_not", logical_not, [](double x) { return x == 0 ? 1. : 0; }),
      mask("isfinite", isfinite, [](double x) { return std::isfinite(x) ? 1. : 0; }),
      mask("isnan", isnan, [](double x) { return std::isnan(x) ? 1. : 0; }),
  };
  rows.push_back({"where",
                  [](In in) { return where(in[0], in[1], in[2]); },
                  [](Arrays in) {
                    Array picked = zip(in[1], in[2], [](double, double) { return 0; });
                    const Array y = zip(in[0], picked, [](double, double) { return 0; });
                    const auto c = broadcast_indices(in[0], y.sizes), a = broadcast_indices(in[1], y.sizes),
                               b = broadcast_indices(in[2], y.sizes);
                    Array out = y;
                    for (std::size_t i = 0; i < out.values.size(); ++i) {
                      out.values[i] = in[0].at(c[i]) != 0 ? in[1].at(a[i]) : in[2].at(b[i]);
                    }
                    return out;
                  },
                  {{{{3, 5}, Values::kBool}, {{3, 5}}, {{3, 5}}},
                   {{{5}, Values::kBool}, {{4, 1}}, {{}}},
                   {{{0, 2}, Values::kBool}, {{2}}, {{1}}}},
                  Takes::kAll,
                  true,
                  0,
                  {{{70, 1001}, Values::kBool}, {{1001}}, {{70, 1}}}});
  const auto binary_in_place = [&](const char* name, std::function<void(Tensor&, const Tensor&)> op,
                                   double (*f)(double, double), Takes takes, Values second = Values::kNormal,
                                   Values first = Values::kNormal) {
    rows.push_back(in_place(
        name, [op](Tensor& y, In in) { op(y, in[1]); }, [f](Arrays in) { return zip(in[0], in[1], f); },
        in_place_cases(first, second), {{{70, 1001}, first}, {{1001}, second}}, takes));
  };
  binary_in_place(
      "add_", [](Tensor& y, const Tensor& b) { y.add_(b, 0.5); },
      [](double a, double b) { return a + 0.5 * b; }, Takes::kFloating);
  binary_in_place(
      "sub_", [](Tensor& y, const Tensor& b) { y.sub_(b); }, [](double a, double b) { return a - b; },
      Takes::kNumeric);
  binary_in_place(
      "mul_", [](Tensor& y, const Tensor& b) { y.mul_(b); }, [](double a, double b) { return a * b; },
      Takes::kAll);
  binary_in_place(
      "div_", [](Tensor& y, const Tensor& b) { y.div_(b); }, [](double a, double b) { return a / b; },
      Takes::kFloating, Values::kPositive);
  binary_in_place(
      "pow_-tensor", [](Tensor& y, const Tensor& b) { y.pow_(b); },
      [](double a, double b) { return std::pow(a, b); }, Takes::kNumeric, Values::kNormal, Values::kPositive);
  binary_in_place(
      "copy_", [](Tensor& y, const Tensor& b) { y.copy_(b); }, [](double, double b) { return b; },
      Takes::kAll);
  const auto unary_in_place = [&](const char* name, std::function<void(Tensor&)> op, double (*f)(double),
                                  Takes takes = Takes::kFloating, Values values = Values::kNormal) {
    rows.push_back(in_place(
        name, [op](Tensor& y, In) { op(y); }, [f](Arrays in) { return map(in[0], f); }, unary_cases(values),
        {{{70, 1001}, values}}, takes));
  };
  unary_in_place(
      "add_-number", [](Tensor& y) { y.add_(1.5); }, [](double x) { return x + 1.5; });
  unary_in_place(
      "mul_-number", [](Tensor& y) { y.mul_(1.5); }, [](double x) { return x * 1.5; });
  unary_in_place(
      "div_-number", [](Tensor& y) { y.div_(3); }, [](double x) { return x / 3; });
  unary_in_place(
      "sub_-number", [](Tensor& y) { y.sub_(1.5); }, [](double x) { return x - 1.5; });
  unary_in_place(
      "pow_", [](Tensor& y) { y.pow_(3); }, [](double x) { return x * x * x; }, Takes::kNumeric);
  unary_in_place(
      "neg_", [](Tensor& y) { y.neg_(); }, [](double x) { return -x; }, Takes::kNumeric);
  unary_in_place(
      "exp_", [](Tensor& y) { y.exp_(); }, [](double x) { return std::exp(x); });
  unary_in_place(
      "log_", [](Tensor& y) { y.log_(); }, [](double x) { return std::log(x); }, Takes::kFloating,
      Values::kPositive);
  unary_in_place(
      "sqrt_", [](Tensor& y) { y.sqrt_(); }, [](double x) { return std::sqrt(x); }, Takes::kFloating,
      Values::kPositive);
  unary_in_place(
      "tanh_", [](Tensor& y) { y.tanh_(); }, [](double x) { return std::tanh(x); });
  unary_in_place(
      "sigmoid_", [](Tensor& y) { y.sigmoid_(); }, [](double x) { return 1 / (1 + std::exp(-x)); });
  unary_in_place(
      "relu_", [](Tensor& y) { y.relu_(); }, [](double x) { return x > 0 ? x : 0; }, Takes::kNumeric);
  unary_in_place(
      "fill_", [](Tensor& y) { y.fill_(2.5); }, [](double) { return 2.5; });
  unary_in_place(
      "zero_", [](Tensor& y) { y.zero_(); }, [](double) { return 0.0; }, Takes::kAll);
  return rows;
}

}  // namespace tutti::testing
