// SPDX-License-Identifier: Apache-2.0
// Operations of two operands, and fills, that write their first input; in_place_unary.cpp has the others. Each op: forward above
// backward; members last.
#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "tensor/promotion.hpp"
#include "tutti/autograd/function.hpp"

namespace tutti {

namespace {

using autograd::Function;
using Gradients2 = std::array<Tensor, 2>;

// Computes in the promoted dtype and stores in that of `self`, if its kind can hold the result.
void write(const Tensor& self, dispatch::Pointwise call, std::initializer_list<const Tensor*> inputs) {
  const bool holds = is_floating_point(self.dtype()) ||
                     (!is_floating_point(call.compute) && self.dtype() != DType::kBool) ||
                     call.compute == DType::kBool;
  TUTTI_CHECK(holds, DTypeError, call.name, "_: a result of ", call.compute,
              " cannot be stored in a tensor of ", self.dtype());
  if (call.compute == self.dtype()) {
    call.result = self.dtype();
    dispatch::pointwise_into(self, call, inputs);
  } else {
    call.result = call.compute;
    raw::copy(self, dispatch::pointwise(call, inputs));
  }
}
template <class F>
dispatch::Pointwise call_of(const char* name, DType compute, double param = 0) {
  return {dispatch::kFunctor<F>, name, compute, compute, {param}};
}
template <class F>
dispatch::Pointwise scalar_call(const char* name, DType compute, Scalar number) {
  dispatch::Pointwise call = call_of<F>(name, compute);
  call.scalar_input = 1;
  call.scalar = number;
  return call;
}

// self += alpha b.  dself = g, db = alpha g.
struct AddInPlace : Function<AddInPlace> {
  struct State {
    ops::InputMeta b;
    double alpha = 1;
  };
  static Tensor forward(Context& ctx, const Tensor& self, const Tensor& b, double alpha, const char* name) {
    const DType dtype = result_type(self, b);
    ops::check_alpha(name, dtype, alpha);
    ctx.mark_dirty(0);
    if (ctx.recording()) ctx.state() = {ops::InputMeta(b), alpha};
    write(self,
          alpha == 1 ? call_of<functors::Add>(name, dtype) : call_of<functors::AddScaled>(name, dtype, alpha),
          {&self, &b});
    return self;
  }
  static Gradients2 backward(Context& ctx, const Tensor& grad_y) {
    Gradients2 grads{grad_y, Tensor()};
    const double alpha = ctx.state().alpha;
    if (ctx.needs_input_grad(1))
      grads[1] = ctx.state().b.reduce(alpha == 1 ? grad_y : ops::times(grad_y, alpha));
    return grads;
  }
};

// self *= b.  dself = g b, db = g self (as it was).
struct MulInPlace : Function<MulInPlace> {
  struct State {
    ops::InputMeta b;
  };
  static Tensor forward(Context& ctx, const Tensor& self, const Tensor& b) {
    if (ctx.recording()) ctx.state().b = ops::InputMeta(b);
    ctx.save(ctx.needs_input_grad(1) ? raw::clone(self) : Tensor(), ctx.needs_input_grad(0) ? b : Tensor());
    ctx.mark_dirty(0);
    write(self, call_of<functors::Mul>("mul", result_type(self, b)), {&self, &b});
    return self;
  }
  static Gradients2 backward(Context& ctx, const Tensor& grad_y) {
    Gradients2 grads;
    if (ctx.needs_input_grad(0))
      grads[0] = dispatch::binary<functors::Mul>("mul", grad_y.dtype(), grad_y, ctx.saved(1));
    if (ctx.needs_input_grad(1)) {
      grads[1] =
          ctx.state().b.reduce(dispatch::binary<functors::Mul>("mul", grad_y.dtype(), grad_y, ctx.saved(0)));
    }
    return grads;
  }
};

// self /= b.  dself = g / b, db = -g self / b^2 (self as it was).
struct DivInPlace : Function<DivInPlace> {
  struct State {
    ops::InputMeta b;
  };
  static Tensor forward(Context& ctx, const Tensor& self, const Tensor& b) {
    if (ctx.recording()) ctx.state().b = ops::InputMeta(b);
    ctx.save(ctx.needs_input_grad(1) ? raw::clone(self) : Tensor(), b);
    ctx.mark_dirty(0);
    write(self, call_of<functors::Div>("div", dispatch::floating(result_type(self, b))), {&self, &b});
    return self;
  }
  static Gradients2 backward(Context& ctx, const Tensor& grad_y) {
    Gradients2 grads;
    const Tensor b = ctx.saved(1);
    const DType dtype = grad_y.dtype();
    if (ctx.needs_input_grad(0)) grads[0] = dispatch::binary<functors::Div>("div", dtype, grad_y, b);
    if (ctx.needs_input_grad(1)) {
      const Tensor self = ctx.saved(0);
      grads[1] = ctx.state().b.reduce(
          dispatch::ternary<functors::DivGradDenominator>("div", dtype, grad_y, self, b));
    }
    return grads;
  }
};

// self = self^b.  dself = g b self^(b-1), db = g self^b ln self (self as it was).
struct PowTensorInPlace : Function<PowTensorInPlace> {
  struct State {
    ops::InputMeta b;
  };
  static Tensor forward(Context& ctx, const Tensor& self, const Tensor& b) {
    if (ctx.recording()) {
      ctx.state().b = ops::InputMeta(b);
      ctx.save(raw::clone(self), b);
    }
    ctx.mark_dirty(0);
    write(self, call_of<functors::Pow>("pow", result_type(self, b)), {&self, &b});
    return self;
  }
  static Gradients2 backward(Context& ctx, const Tensor& grad_y) {
    Gradients2 grads;
    const Tensor self = ctx.saved(0);
    const Tensor b = ctx.saved(1);
    const DType dtype = grad_y.dtype();
    if (ctx.needs_input_grad(0))
      grads[0] = dispatch::ternary<functors::PowGradBase>("pow", dtype, grad_y, self, b);
    if (ctx.needs_input_grad(1)) {
      grads[1] =
          ctx.state().b.reduce(dispatch::ternary<functors::PowGradExponent>("pow", dtype, grad_y, self, b));
    }
    return grads;
  }
};

// self += s.  dself = g.
struct AddScalarInPlace : Function<AddScalarInPlace> {
  static Tensor forward(Context& ctx, const Tensor& self, Scalar number) {
    ctx.mark_dirty(0);
    write(self, scalar_call<functors::Add>("add", result_type(self, number), number), {&self});
    return self;
  }
  static Tensor backward(Context&, const Tensor& grad_y) { return grad_y; }
};

// self -= s.  dself = g.
struct SubScalarInPlace : Function<SubScalarInPlace> {
  static Tensor forward(Context& ctx, const Tensor& self, Scalar number) {
    ctx.mark_dirty(0);
    write(self, scalar_call<functors::Sub>("sub", result_type(self, number), number), {&self});
    return self;
  }
  static Tensor backward(Context&, const Tensor& grad_y) { return grad_y; }
};

struct Factor {
  double value = 1;
};

// self *= s.  dself = g s.
struct MulScalarInPlace : Function<MulScalarInPlace> {
  using State = Factor;
  static Tensor forward(Context& ctx, const Tensor& self, Scalar number) {
    ctx.state().value = number.to_double();
    ctx.mark_dirty(0);
    write(self, scalar_call<functors::Mul>("mul", result_type(self, number), number), {&self});
    return self;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) { return ops::times(grad_y, ctx.state().value); }
};

// self /= s.  dself = g / s.
struct DivScalarInPlace : Function<DivScalarInPlace> {
  using State = Factor;
  static Tensor forward(Context& ctx, const Tensor& self, Scalar number) {
    ctx.state().value = number.to_double();
    ctx.mark_dirty(0);
    write(self, scalar_call<functors::Div>("div", dispatch::floating(result_type(self, number)), number),
          {&self});
    return self;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return dispatch::pointwise(scalar_call<functors::Div>("div", grad_y.dtype(), ctx.state().value),
                               {&grad_y});
  }
};

// self = s.  dself = 0.
struct FillInPlace : Function<FillInPlace> {
  static Tensor forward(Context& ctx, const Tensor& self, Scalar value) {
    raw::check_writable(self, "fill_");
    ctx.mark_dirty(0);
    raw::fill(self, value, "fill_");
    return self;
  }
  static Tensor backward(Context&, const Tensor& grad_y) { return zeros_like(grad_y); }
};

// self = b, broadcast and converted.  dself = 0, db = g.
struct CopyInPlace : Function<CopyInPlace> {
  struct State {
    ops::InputMeta b;
  };
  static Tensor forward(Context& ctx, const Tensor& self, const Tensor& b) {
    if (ctx.recording()) ctx.state().b = ops::InputMeta(b);
    ctx.mark_dirty(0);
    raw::copy(self, b);
    return self;
  }
  static Gradients2 backward(Context& ctx, const Tensor& grad_y) {
    Gradients2 grads;
    if (ctx.needs_input_grad(0)) grads[0] = zeros_like(grad_y);
    if (ctx.needs_input_grad(1)) grads[1] = ctx.state().b.reduce(grad_y);
    return grads;
  }
};

}  // namespace

Tensor& Tensor::add_(const Tensor& other, double alpha) {
  ops::check_defined("add_", "the tensor", *this, "other", other);
  AddInPlace::apply(*this, other, alpha, "add");
  return *this;
}
Tensor& Tensor::add_(Scalar other) {
  ops::check_defined("add_", "the tensor", *this);
  AddScalarInPlace::apply(*this, other);
  return *this;
}
Tensor& Tensor::sub_(const Tensor& other) {
  ops::check_defined("sub_", "the tensor", *this, "other", other);
  ops::check_has_difference("sub_", dtype(), other.dtype());
  AddInPlace::apply(*this, other, -1.0, "sub");
  return *this;
}
Tensor& Tensor::sub_(Scalar other) {
  ops::check_defined("sub_", "the tensor", *this);
  ops::check_has_difference("sub_", dtype());
  SubScalarInPlace::apply(*this, other);
  return *this;
}
Tensor& Tensor::mul_(const Tensor& other) {
  ops::check_defined("mul_", "the tensor", *this, "other", other);
  MulInPlace::apply(*this, other);
  return *this;
}
Tensor& Tensor::mul_(Scalar other) {
  ops::check_defined("mul_", "the tensor", *this);
  MulScalarInPlace::apply(*this, other);
  return *this;
}
Tensor& Tensor::div_(const Tensor& other) {
  ops::check_defined("div_", "the tensor", *this, "other", other);
  DivInPlace::apply(*this, other);
  return *this;
}
Tensor& Tensor::div_(Scalar other) {
  ops::check_defined("div_", "the tensor", *this);
  DivScalarInPlace::apply(*this, other);
  return *this;
}
Tensor& Tensor::pow_(const Tensor& exponent) {
  ops::check_defined("pow_", "the tensor", *this, "exponent", exponent);
  PowTensorInPlace::apply(*this, exponent);
  return *this;
}
Tensor& Tensor::fill_(Scalar value) {
  ops::check_defined("fill_", "the tensor", *this);
  FillInPlace::apply(*this, value);
  return *this;
}
Tensor& Tensor::zero_() { return fill_(0); }
Tensor& Tensor::copy_(const Tensor& source) {
  ops::check_defined("copy_", "the tensor", *this, "source", source);
  CopyInPlace::apply(*this, source);
  return *this;
}

}  // namespace tutti
