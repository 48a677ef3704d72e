// SPDX-License-Identifier: Apache-2.0
// Float64 operations for autograd's own tests: plain loops, so that nothing here depends on kernels.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensor/raw.hpp"
#include "tutti/autograd/autograd.hpp"
#include "tutti/core/error.hpp"
#include "tutti/device/memory.hpp"
#include "tutti/tensor/factories.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::small_ops {

inline Tensor make(std::initializer_list<double> values, bool requires_grad = false) {
  Tensor result = empty({static_cast<std::int64_t>(values.size())}, DType::kFloat64);
  std::copy(values.begin(), values.end(), result.data<double>());
  if (requires_grad) result.requires_grad_();
  return result;
}

inline std::vector<double> values(const Tensor& tensor) { return tensor.to_vector<double>(); }

template <class F>
Tensor map(const Tensor& a, F f) {
  Tensor result = empty(a.sizes(), DType::kFloat64);
  const Tensor in = raw::contiguous(a);  // gradients may be expanded
  for (std::int64_t i = 0; i < a.numel(); ++i) result.data<double>()[i] = f(in.data<double>()[i]);
  return result;
}

template <class F>
Tensor map(const Tensor& a, const Tensor& b, F f) {
  Tensor result = empty(a.sizes(), DType::kFloat64);
  const Tensor in_a = raw::contiguous(a);
  const Tensor in_b = raw::contiguous(b);
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    result.data<double>()[i] = f(in_a.data<double>()[i], in_b.data<double>()[i]);
  }
  return result;
}

inline Tensor multiply(const Tensor& a, const Tensor& b) {
  return map(a, b, [](double x, double y) { return x * y; });
}

struct Mul : autograd::Function<Mul> {
  static Tensor forward(Context& ctx, const Tensor& a, const Tensor& b) {
    ctx.save(a, b);
    return multiply(a, b);
  }
  static std::pair<Tensor, Tensor> backward(Context& ctx, const Tensor& grad) {
    Tensor grad_a = ctx.needs_input_grad(0) ? multiply(grad, ctx.saved(1)) : Tensor();
    Tensor grad_b = ctx.needs_input_grad(1) ? multiply(grad, ctx.saved(0)) : Tensor();
    return {grad_a, grad_b};
  }
};

struct Add : autograd::Function<Add> {
  static Tensor forward(Context&, const Tensor& a, const Tensor& b) {
    return map(a, b, [](double x, double y) { return x + y; });
  }
  static std::array<Tensor, 2> backward(Context&, const Tensor& grad) { return {grad, grad}; }
};

struct Scale : autograd::Function<Scale> {
  struct State {
    double factor = 0;
  };
  static Tensor forward(Context& ctx, const Tensor& a, double factor) {
    ctx.state().factor = factor;
    return map(a, [factor](double x) { return factor * x; });
  }
  static Tensor backward(Context& ctx, const Tensor& grad) {
    return map(grad, [factor = ctx.state().factor](double x) { return factor * x; });
  }
};

struct Sum : autograd::Function<Sum> {
  static Tensor forward(Context& ctx, const Tensor& a) {
    ctx.state().sizes = a.sizes();
    double sum = 0;
    for (double value : values(a)) sum += value;
    return full({}, sum, DType::kFloat64);
  }
  static Tensor backward(Context& ctx, const Tensor& grad) { return raw::expand(grad, ctx.state().sizes); }
  struct State {
    Dims sizes;
  };
};

// Saves its output.
struct Exp : autograd::Function<Exp> {
  static Tensor forward(Context& ctx, const Tensor& a) {
    Tensor y = map(a, [](double x) { return std::exp(x); });
    ctx.save(y);
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad) { return multiply(grad, ctx.saved(0)); }
};

// sqrt: NaN for negative numbers; its derivative is infinite at 0.
struct Sqrt : autograd::Function<Sqrt> {
  static Tensor forward(Context& ctx, const Tensor& a) {
    Tensor y = map(a, [](double x) { return std::sqrt(x); });
    ctx.save(y);
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad) {
    return map(grad, ctx.saved(0), [](double g, double y) { return g / (2 * y); });
  }
};

// x *= factor, in place.
struct ScaleInPlace : autograd::Function<ScaleInPlace> {
  struct State {
    double factor = 0;
  };
  static Tensor forward(Context& ctx, const Tensor& a, double factor) {
    ctx.state().factor = factor;
    ctx.mark_dirty(0);
    for (std::int64_t i = 0; i < a.numel(); ++i) a.data<double>()[i] *= factor;
    return a;
  }
  static Tensor backward(Context& ctx, const Tensor& grad) {
    return map(grad, [factor = ctx.state().factor](double x) { return factor * x; });
  }
};

// a += b, in place.
struct AddInPlace : autograd::Function<AddInPlace> {
  static Tensor forward(Context& ctx, const Tensor& a, const Tensor& b) {
    ctx.mark_dirty(0);
    for (std::int64_t i = 0; i < a.numel(); ++i) a.data<double>()[i] += b.data<double>()[i];
    return a;
  }
  static std::array<Tensor, 2> backward(Context&, const Tensor& grad) { return {grad, grad}; }
};

// A view of everything.
struct Alias : autograd::Function<Alias> {
  static Tensor forward(Context&, const Tensor& a) { return raw::alias(a); }
  static Tensor backward(Context&, const Tensor& grad) { return grad; }
};

// Two outputs: 2x and 3x.
struct TwoAndThree : autograd::Function<TwoAndThree> {
  static std::pair<Tensor, Tensor> forward(Context&, const Tensor& a) {
    return {map(a, [](double x) { return 2 * x; }), map(a, [](double x) { return 3 * x; })};
  }
  static Tensor backward(Context&, const Tensor& grad_two, const Tensor& grad_three) {
    return map(grad_two, grad_three, [](double two, double three) { return 2 * two + 3 * three; });
  }
};

// Any number of inputs: their sum.
struct SumAll : autograd::Function<SumAll> {
  struct State {
    std::size_t count = 0;
  };
  static Tensor forward(Context& ctx, std::span<const Tensor> inputs) {
    ctx.state().count = inputs.size();
    Tensor result = zeros(inputs[0].sizes(), DType::kFloat64);
    for (const Tensor& input : inputs) result = map(result, input, [](double x, double y) { return x + y; });
    return result;
  }
  static std::vector<Tensor> backward(Context& ctx, const Tensor& grad) {
    return std::vector<Tensor>(ctx.state().count, grad);
  }
};

inline Tensor mul(const Tensor& a, const Tensor& b) { return Mul::apply(a, b); }
inline Tensor add(const Tensor& a, const Tensor& b) { return Add::apply(a, b); }
inline Tensor scale(const Tensor& a, double factor) { return Scale::apply(a, factor); }
inline Tensor sum(const Tensor& a) { return Sum::apply(a); }
inline Tensor exp(const Tensor& a) { return Exp::apply(a); }

// Text of the exception of kind E that f throws; empty if it throws none.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

using Values = std::vector<double>;

}  // namespace tutti::small_ops

#define EXPECT_CONTAINS(text, part)                           \
  do {                                                        \
    const std::string given_text = (text);                    \
    EXPECT_NE(given_text.find(part), std::string::npos)       \
        << "'" << given_text << "' lacks '" << (part) << "'"; \
  } while (false)
