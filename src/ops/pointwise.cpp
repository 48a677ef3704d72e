// SPDX-License-Identifier: Apache-2.0
// Arithmetic with broadcasting. Each op: forward above backward; the public functions last.
#include "tutti/ops/pointwise.hpp"

#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "tensor/promotion.hpp"
#include "tutti/autograd/function.hpp"

namespace tutti {

namespace {

using autograd::CastPolicy;
using autograd::Function;
using Gradients2 = std::array<Tensor, 2>;

// Where the two inputs of a broadcasting op came from, so that gradients can go back there.
struct Operands {
  ops::InputMeta a, b;
  void remember(const Tensor& x, const Tensor& y) {
    a = ops::InputMeta(x);
    b = ops::InputMeta(y);
  }
};

// y = a + alpha b.  da = g, db = alpha g.
struct Add : Function<Add> {
  static constexpr CastPolicy kCast = CastPolicy::kPromote;
  struct State {
    Operands from;
    double alpha = 1;
  };
  static Tensor forward(Context& ctx, const Tensor& a, const Tensor& b, double alpha) {
    const DType dtype = result_type(a, b);
    if (ctx.recording()) {
      ctx.state().from.remember(a, b);
      ctx.state().alpha = alpha;
    }
    ops::check_alpha("add", dtype, alpha);
    if (alpha == 1) return dispatch::binary<functors::Add>("add", dtype, a, b);
    return dispatch::binary<functors::AddScaled>("add", dtype, a, b, alpha);
  }
  static Gradients2 backward(Context& ctx, const Tensor& grad_y) {
    const State& state = ctx.state();
    Gradients2 grads;
    if (ctx.needs_input_grad(0)) grads[0] = state.from.a.reduce(grad_y);
    if (ctx.needs_input_grad(1)) {
      const Tensor scaled = state.alpha == 1 ? grad_y : ops::times(grad_y, state.alpha);
      grads[1] = state.from.b.reduce(scaled);
    }
    return grads;
  }
};

// y = a - b.  da = g, db = -g.
struct Sub : Function<Sub> {
  static constexpr CastPolicy kCast = CastPolicy::kPromote;
  using State = Operands;
  static Tensor forward(Context& ctx, const Tensor& a, const Tensor& b) {
    ops::check_has_difference("sub", a.dtype(), b.dtype());
    if (ctx.recording()) ctx.state().remember(a, b);
    return dispatch::binary<functors::Sub>("sub", result_type(a, b), a, b);
  }
  static Gradients2 backward(Context& ctx, const Tensor& grad_y) {
    Gradients2 grads;
    if (ctx.needs_input_grad(0)) grads[0] = ctx.state().a.reduce(grad_y);
    if (ctx.needs_input_grad(1))
      grads[1] = ctx.state().b.reduce(dispatch::unary<functors::Neg>("sub", grad_y));
    return grads;
  }
};

// y = a b.  da = g b, db = g a.
struct Mul : Function<Mul> {
  static constexpr CastPolicy kCast = CastPolicy::kPromote;
  using State = Operands;
  static Tensor forward(Context& ctx, const Tensor& a, const Tensor& b) {
    if (ctx.recording()) ctx.state().remember(a, b);
    ctx.save(a, b);
    return dispatch::binary<functors::Mul>("mul", result_type(a, b), a, b);
  }
  static Gradients2 backward(Context& ctx, const Tensor& grad_y) {
    Gradients2 grads;
    const DType dtype = grad_y.dtype();
    if (ctx.needs_input_grad(0)) {
      grads[0] = ctx.state().a.reduce(dispatch::binary<functors::Mul>("mul", dtype, grad_y, ctx.saved(1)));
    }
    if (ctx.needs_input_grad(1)) {
      grads[1] = ctx.state().b.reduce(dispatch::binary<functors::Mul>("mul", dtype, grad_y, ctx.saved(0)));
    }
    return grads;
  }
};

// y = a / b.  da = g / b, db = -g a / b^2.
struct Div : Function<Div> {
  static constexpr CastPolicy kCast = CastPolicy::kPromote;
  using State = Operands;
  static Tensor forward(Context& ctx, const Tensor& a, const Tensor& b) {
    if (ctx.recording()) ctx.state().remember(a, b);
    ctx.save(a, b);
    return dispatch::binary<functors::Div>("div", dispatch::floating(result_type(a, b)), a, b);
  }
  static Gradients2 backward(Context& ctx, const Tensor& grad_y) {
    Gradients2 grads;
    const DType dtype = grad_y.dtype();
    const Tensor a = ctx.saved(0);
    const Tensor b = ctx.saved(1);
    if (ctx.needs_input_grad(0)) {
      grads[0] = ctx.state().a.reduce(dispatch::binary<functors::Div>("div", dtype, grad_y, b));
    }
    if (ctx.needs_input_grad(1)) {
      grads[1] =
          ctx.state().b.reduce(dispatch::ternary<functors::DivGradDenominator>("div", dtype, grad_y, a, b));
    }
    return grads;
  }
};

// y = a^b.  da = g b a^(b-1), db = g a^b log a.
struct Pow : Function<Pow> {
  static constexpr CastPolicy kCast = CastPolicy::kFloat32;
  using State = Operands;
  static Tensor forward(Context& ctx, const Tensor& a, const Tensor& b) {
    if (ctx.recording()) ctx.state().remember(a, b);
    ctx.save(a, b);
    return dispatch::binary<functors::Pow>("pow", result_type(a, b), a, b);
  }
  static Gradients2 backward(Context& ctx, const Tensor& grad_y) {
    Gradients2 grads;
    const DType dtype = grad_y.dtype();
    const Tensor a = ctx.saved(0);
    const Tensor b = ctx.saved(1);
    if (ctx.needs_input_grad(0)) {
      grads[0] = ctx.state().a.reduce(dispatch::ternary<functors::PowGradBase>("pow", dtype, grad_y, a, b));
    }
    if (ctx.needs_input_grad(1)) {
      grads[1] =
          ctx.state().b.reduce(dispatch::ternary<functors::PowGradExponent>("pow", dtype, grad_y, a, b));
    }
    return grads;
  }
};

// The number beside a tensor: y = f(x, s) or f(s, x).
template <class F>
Tensor with_scalar(const char* name, DType dtype, const Tensor& x, Scalar number, bool number_first) {
  dispatch::Pointwise call{dispatch::kFunctor<F>, name, dtype, dtype};
  call.scalar_input = number_first ? 0 : 1;
  call.scalar = number;
  return dispatch::pointwise(call, {&x});
}

// Of x and a number; the gradient is y's in x's dtype.
template <class Op>
struct Shift : Function<Op> {
  using Context = autograd::Context<Op>;
  struct State {
    DType dtype = DType::kFloat32;
  };
  template <class Functor>
  static Tensor compute(const char* name, Context& ctx, const Tensor& x, Scalar number,
                        bool number_first = false) {
    ctx.state().dtype = x.dtype();
    return with_scalar<Functor>(name, result_type(x, number), x, number, number_first);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return raw::to_dtype(grad_y, ctx.state().dtype);
  }
};

// y = x + s.  dx = g.
struct AddScalar : Shift<AddScalar> {
  static Tensor forward(Context& ctx, const Tensor& x, Scalar number) {
    return compute<functors::Add>("add", ctx, x, number);
  }
};

// y = x - s.  dx = g.
struct SubScalar : Shift<SubScalar> {
  static Tensor forward(Context& ctx, const Tensor& x, Scalar number) {
    ops::check_has_difference("sub", x.dtype());
    return compute<functors::Sub>("sub", ctx, x, number);
  }
};

// y = s - x.  dx = -g.
struct ScalarSub : Shift<ScalarSub> {
  static Tensor forward(Context& ctx, const Tensor& x, Scalar number) {
    ops::check_has_difference("sub", x.dtype());
    return compute<functors::Sub>("sub", ctx, x, number, /*number_first=*/true);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return Shift::backward(ctx, dispatch::unary<functors::Neg>("sub", grad_y));
  }
};

// y = x s.  dx = g s.
struct MulScalar : Function<MulScalar> {
  struct State {
    DType dtype = DType::kFloat32;
    double factor = 1;
  };
  static Tensor forward(Context& ctx, const Tensor& x, Scalar number) {
    ctx.state() = {x.dtype(), number.to_double()};
    return with_scalar<functors::Mul>("mul", result_type(x, number), x, number, false);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return raw::to_dtype(ops::times(grad_y, ctx.state().factor), ctx.state().dtype);
  }
};

// y = x / s.  dx = g / s.
struct DivScalar : Function<DivScalar> {
  struct State {
    DType dtype = DType::kFloat32;
    double divisor = 1;
  };
  static Tensor forward(Context& ctx, const Tensor& x, Scalar number) {
    ctx.state() = {x.dtype(), number.to_double()};
    return with_scalar<functors::Div>("div", dispatch::floating(result_type(x, number)), x, number, false);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    const Tensor grad = with_scalar<functors::Div>("div", grad_y.dtype(), grad_y, ctx.state().divisor, false);
    return raw::to_dtype(grad, ctx.state().dtype);
  }
};

// y = s / x.  dx = -g s / x^2.
struct ScalarDiv : Function<ScalarDiv> {
  struct State {
    double numerator = 1;
  };
  static Tensor forward(Context& ctx, const Tensor& x, Scalar number) {
    ctx.state().numerator = number.to_double();
    ctx.save(x);
    return with_scalar<functors::Div>("div", dispatch::floating(result_type(x, number)), x, number, true);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    const Tensor x = ctx.saved(0);
    dispatch::Pointwise call{dispatch::kFunctor<functors::DivGradDenominator>, "div", grad_y.dtype(),
                             grad_y.dtype()};
    call.scalar_input = 1;
    call.scalar = ctx.state().numerator;
    return raw::to_dtype(dispatch::pointwise(call, {&grad_y, &x}), x.dtype());
  }
};

// y = x^e.  dx = g e x^(e-1).
struct PowScalar : Function<PowScalar> {
  static constexpr CastPolicy kCast = CastPolicy::kFloat32;
  struct State {
    double exponent = 1;
  };
  static Tensor forward(Context& ctx, const Tensor& x, Scalar exponent) {
    TUTTI_CHECK(is_floating_point(x.dtype()) || exponent.is_floating_point() || exponent.to_double() >= 0,
                ValueError, "pow: integers to a negative integer power (", exponent.to_int64(),
                ") are not integers; convert to a floating dtype");
    ctx.state().exponent = exponent.to_double();
    ctx.save(x);
    return dispatch::pointwise(ops::power_call("pow", result_type(x, exponent), exponent), {&x});
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    const Tensor x = ctx.saved(0);
    const Tensor grad = dispatch::unary_grad<functors::PowScalarGrad>("pow", grad_y, x, ctx.state().exponent);
    return raw::to_dtype(grad, x.dtype());
  }
};

// Runs an operation of tensors, which must be defined, and numbers.
template <class Op, class... Numbers>
Tensor apply(const char* name, const Tensor& a, const Tensor& b, Numbers... numbers) {
  ops::check_defined(name, "a", a, "b", b);
  return Op::apply(a, b, numbers...);
}
template <class Op>
Tensor apply(const char* name, const Tensor& x, Scalar number) {
  ops::check_defined(name, "x", x);
  return Op::apply(x, number);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b, double alpha) { return apply<Add>("add", a, b, alpha); }
Tensor add(const Tensor& a, Scalar b) { return apply<AddScalar>("add", a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return apply<Sub>("sub", a, b); }
Tensor sub(const Tensor& a, Scalar b) { return apply<SubScalar>("sub", a, b); }
Tensor sub(Scalar a, const Tensor& b) { return apply<ScalarSub>("sub", b, a); }
Tensor mul(const Tensor& a, const Tensor& b) { return apply<Mul>("mul", a, b); }
Tensor mul(const Tensor& a, Scalar b) { return apply<MulScalar>("mul", a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return apply<Div>("div", a, b); }
Tensor div(const Tensor& a, Scalar b) { return apply<DivScalar>("div", a, b); }
Tensor div(Scalar a, const Tensor& b) { return apply<ScalarDiv>("div", b, a); }
Tensor pow(const Tensor& base, const Tensor& exponent) {
  ops::check_defined("pow", "base", base, "exponent", exponent);
  return Pow::apply(base, exponent);
}
Tensor pow(const Tensor& base, Scalar exponent) {
  ops::check_defined("pow", "base", base);
  return PowScalar::apply(base, exponent);
}

}  // namespace tutti
