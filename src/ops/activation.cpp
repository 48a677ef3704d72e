// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor. Each op: forward above backward; the public functions last.
#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "ops/relu.hpp"
#include "tutti/autograd/function.hpp"
#include "tutti/autograd/guards.hpp"
#include "tutti/ops/pointwise.hpp"

namespace tutti {

namespace {

using autograd::CastPolicy;
using autograd::Function;

// y = -x.  dx = -g.
struct Neg : Function<Neg> {
  static Tensor forward(Context&, const Tensor& x) {
    TUTTI_CHECK(x.dtype() != DType::kBool, DTypeError, "neg: bool has no negative; use logical_not");
    return dispatch::unary<functors::Neg>("neg", x);
  }
  static Tensor backward(Context&, const Tensor& grad_y) {
    return dispatch::unary<functors::Neg>("neg", grad_y);
  }
};

// y = e^x.  dx = g y.
struct Exp : Function<Exp> {
  static constexpr CastPolicy kCast = CastPolicy::kFloat32;
  static Tensor forward(Context& ctx, const Tensor& x) {
    Tensor y = dispatch::unary_floating<functors::Exp>("exp", x);
    ctx.save(y);
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return dispatch::unary_grad<functors::Mul>("exp", grad_y, ctx.saved(0));
  }
};

// y = ln x.  dx = g / x.
struct Log : Function<Log> {
  static constexpr CastPolicy kCast = CastPolicy::kFloat32;
  static Tensor forward(Context& ctx, const Tensor& x) {
    ctx.save(x);
    return dispatch::unary_floating<functors::Log>("log", x);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return dispatch::unary_grad<functors::Div>("log", grad_y, ctx.saved(0));
  }
};

// y = sqrt x.  dx = g / (2 y).
struct Sqrt : Function<Sqrt> {
  static constexpr CastPolicy kCast = CastPolicy::kFloat32;
  static Tensor forward(Context& ctx, const Tensor& x) {
    Tensor y = dispatch::unary_floating<functors::Sqrt>("sqrt", x);
    ctx.save(y);
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return dispatch::unary_grad<functors::SqrtGrad>("sqrt", grad_y, ctx.saved(0));
  }
};

// y = tanh x.  dx = g (1 - y^2).
struct Tanh : Function<Tanh> {
  static Tensor forward(Context& ctx, const Tensor& x) {
    Tensor y = dispatch::unary_floating<functors::Tanh>("tanh", x);
    ctx.save(y);
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return dispatch::unary_grad<functors::TanhGrad>("tanh", grad_y, ctx.saved(0));
  }
};

// y = 1 / (1 + e^-x).  dx = g y (1 - y).
struct Sigmoid : Function<Sigmoid> {
  static Tensor forward(Context& ctx, const Tensor& x) {
    Tensor y = dispatch::unary_floating<functors::Sigmoid>("sigmoid", x);
    ctx.save(y);
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return dispatch::unary_grad<functors::SigmoidGrad>("sigmoid", grad_y, ctx.saved(0));
  }
};

// y = x Phi(x), or 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).          [Hendrycks and Gimpel 2016]
struct Gelu : Function<Gelu> {
  struct State {
    GeluForm form = GeluForm::kErf;
  };
  static Tensor forward(Context& ctx, const Tensor& x, GeluForm form) {
    TUTTI_CHECK(is_floating_point(x.dtype()), DTypeError, "gelu: wanted a floating dtype, given ", x.dtype());
    ctx.state().form = form;
    ctx.save(x);
    return form == GeluForm::kErf ? dispatch::unary<functors::Gelu>("gelu", x)
                                  : dispatch::unary<functors::GeluTanh>("gelu", x);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return ctx.state().form == GeluForm::kErf
               ? dispatch::unary_grad<functors::GeluGrad>("gelu", grad_y, ctx.saved(0))
               : dispatch::unary_grad<functors::GeluTanhGrad>("gelu", grad_y, ctx.saved(0));
  }
};

template <class Op, class... Options>
Tensor apply(const char* name, const Tensor& x, Options... options) {
  ops::check_defined(name, "x", x);
  return Op::apply(x, options...);
}

}  // namespace

Tensor neg(const Tensor& x) { return apply<Neg>("neg", x); }
Tensor exp(const Tensor& x) { return apply<Exp>("exp", x); }
Tensor log(const Tensor& x) { return apply<Log>("log", x); }
Tensor sqrt(const Tensor& x) { return apply<Sqrt>("sqrt", x); }
Tensor tanh(const Tensor& x) { return apply<Tanh>("tanh", x); }
Tensor sigmoid(const Tensor& x) { return apply<Sigmoid>("sigmoid", x); }
Tensor relu(const Tensor& x) { return apply<ops::Relu>("relu", x); }
Tensor relu(Tensor&& x) {
  ops::check_defined("relu", "x", x);
  // A leaf's memory may be the user's own (from_blob); a recorded result's is ours.
  // Under saved-tensor hooks a saved tensor holds no memory, so that nobody else seems to see it.
  const bool ours = x.requires_grad() && !x.is_leaf() && autograd::grad_enabled() &&
                    autograd::detail::thread_state().saved_tensors_hooks == nullptr;
  if (!ours || !raw::is_sole_view(x)) return ops::Relu::apply(x);
  x.relu_();
  return std::move(x);
}
Tensor gelu(const Tensor& x, GeluForm form) { return apply<Gelu>("gelu", x, form); }

}  // namespace tutti
