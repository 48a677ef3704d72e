// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor that write it. Each op: forward above backward; members last.
#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "ops/relu.hpp"
#include "tutti/autograd/function.hpp"

namespace tutti {

namespace {

using autograd::Function;

void check_floating(const Tensor& self, const char* name) {
  ops::check_defined(name, "the tensor", self);
  TUTTI_CHECK(is_floating_point(self.dtype()), DTypeError, name,
              ": the result is floating and cannot be stored in a tensor of ", self.dtype());
}

// self = f(self) where the gradient follows from the result: dself = FGrad(g, result).
template <class Derived, class F, class FGrad>
struct FromResult : Function<Derived> {
  using Context = typename Function<Derived>::Context;
  static Tensor forward(Context& ctx, const Tensor& self) {
    ctx.mark_dirty(0);
    dispatch::unary_into<F>(Derived::kName, self);
    ctx.save(self);
    return self;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return dispatch::unary_grad<FGrad>(Derived::kName, grad_y, ctx.saved(0));
  }
};
struct ExpInPlace : FromResult<ExpInPlace, functors::Exp, functors::Mul> {
  static constexpr const char* kName = "exp_";
};
struct SqrtInPlace : FromResult<SqrtInPlace, functors::Sqrt, functors::SqrtGrad> {
  static constexpr const char* kName = "sqrt_";
};
struct TanhInPlace : FromResult<TanhInPlace, functors::Tanh, functors::TanhGrad> {
  static constexpr const char* kName = "tanh_";
};
struct SigmoidInPlace : FromResult<SigmoidInPlace, functors::Sigmoid, functors::SigmoidGrad> {
  static constexpr const char* kName = "sigmoid_";
};

// self = -self.  dself = -g.
struct NegInPlace : Function<NegInPlace> {
  static constexpr const char* kName = "neg_";
  static Tensor forward(Context& ctx, const Tensor& self) {
    ctx.mark_dirty(0);
    dispatch::unary_into<functors::Neg>(kName, self);
    return self;
  }
  static Tensor backward(Context&, const Tensor& grad_y) {
    return dispatch::unary<functors::Neg>(kName, grad_y);
  }
};

// self = ln self.  dself = g / self (as it was).
struct LogInPlace : Function<LogInPlace> {
  static constexpr const char* kName = "log_";
  static Tensor forward(Context& ctx, const Tensor& self) {
    if (ctx.recording()) ctx.save(raw::clone(self));
    ctx.mark_dirty(0);
    dispatch::unary_into<functors::Log>(kName, self);
    return self;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return dispatch::unary_grad<functors::Div>(kName, grad_y, ctx.saved(0));
  }
};

// self = self^e.  dself = g e self^(e-1) (self as it was).
struct PowInPlace : Function<PowInPlace> {
  static constexpr const char* kName = "pow_";
  struct State {
    double exponent = 1;
  };
  static Tensor forward(Context& ctx, const Tensor& self, Scalar exponent) {
    const dispatch::Pointwise call = ops::power_call(kName, self.dtype(), exponent);
    ctx.state().exponent = exponent.to_double();
    if (ctx.recording()) ctx.save(raw::clone(self));
    ctx.mark_dirty(0);
    dispatch::pointwise_into(self, call, {&self});
    return self;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return dispatch::unary_grad<functors::PowScalarGrad>(kName, grad_y, ctx.saved(0), ctx.state().exponent);
  }
};

}  // namespace

Tensor& Tensor::neg_() {
  ops::check_defined("neg_", "the tensor", *this);
  TUTTI_CHECK(dtype() != DType::kBool, DTypeError, "neg_: bool has no negative");
  NegInPlace::apply(*this);
  return *this;
}
Tensor& Tensor::relu_() {
  ops::check_defined("relu_", "the tensor", *this);
  TUTTI_CHECK(dtype() != DType::kBool, DTypeError, "relu_: bool is not a number");
  ops::ReluInPlace::apply(*this);
  return *this;
}
Tensor& Tensor::exp_() {
  check_floating(*this, "exp_");
  ExpInPlace::apply(*this);
  return *this;
}
Tensor& Tensor::log_() {
  check_floating(*this, "log_");
  LogInPlace::apply(*this);
  return *this;
}
Tensor& Tensor::sqrt_() {
  check_floating(*this, "sqrt_");
  SqrtInPlace::apply(*this);
  return *this;
}
Tensor& Tensor::tanh_() {
  check_floating(*this, "tanh_");
  TanhInPlace::apply(*this);
  return *this;
}
Tensor& Tensor::sigmoid_() {
  check_floating(*this, "sigmoid_");
  SigmoidInPlace::apply(*this);
  return *this;
}
Tensor& Tensor::pow_(Scalar exponent) {
  ops::check_defined("pow_", "the tensor", *this);
  TUTTI_CHECK(is_floating_point(dtype()) || (!exponent.is_floating_point() && exponent.to_double() >= 0),
              DTypeError, "pow_: a power of ", exponent.to_double(), " cannot be stored in a tensor of ",
              dtype());
  PowInPlace::apply(*this, exponent);
  return *this;
}

}  // namespace tutti
