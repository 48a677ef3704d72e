// SPDX-License-Identifier: Apache-2.0
// Comparisons and selection by a mask.
#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "tensor/promotion.hpp"
#include "tutti/autograd/function.hpp"
#include "tutti/ops/pointwise.hpp"

namespace tutti {

namespace {

using autograd::CastPolicy;
using autograd::Function;

template <class F>
Tensor compare(const char* name, const Tensor& a, const Tensor& b) {
  ops::check_defined(name, "a", a, "b", b);
  return dispatch::pointwise({dispatch::kFunctor<F>, name, result_type(a, b), DType::kBool}, {&a, &b});
}
template <class F>
Tensor compare(const char* name, const Tensor& a, Scalar b) {
  ops::check_defined(name, "a", a);
  dispatch::Pointwise call{dispatch::kFunctor<F>, name, result_type(a, b), DType::kBool};
  call.scalar_input = 1;
  call.scalar = b;
  return dispatch::pointwise(call, {&a});
}
template <class F>
Tensor classify(const char* name, const Tensor& x) {
  return dispatch::pointwise({dispatch::kFunctor<F>, name, x.dtype(), DType::kBool}, {&x});
}

// y = condition ? a : b.  da = condition ? g : 0, db = condition ? 0 : g.
struct Where : Function<Where> {
  static constexpr CastPolicy kCast = CastPolicy::kPromote;
  struct State {
    ops::InputMeta a, b;
  };
  static Tensor forward(Context& ctx, const Tensor& condition, const Tensor& a, const Tensor& b) {
    TUTTI_CHECK(condition.dtype() == DType::kBool, DTypeError, "where: the condition must be bool, given ",
                condition.dtype());
    if (ctx.recording()) ctx.state() = {ops::InputMeta(a), ops::InputMeta(b)};
    ctx.save(condition);
    return dispatch::ternary<functors::Where>("where", result_type(a, b), condition, a, b);
  }
  static std::array<Tensor, 3> backward(Context& ctx, const Tensor& grad_y) {
    const Tensor condition = ctx.saved(0);
    const Tensor zero = zeros({}, grad_y.dtype(), grad_y.device());
    std::array<Tensor, 3> grads;
    if (ctx.needs_input_grad(1)) {
      grads[1] = ctx.state().a.reduce(
          dispatch::ternary<functors::Where>("where", grad_y.dtype(), condition, grad_y, zero));
    }
    if (ctx.needs_input_grad(2)) {
      grads[2] = ctx.state().b.reduce(
          dispatch::ternary<functors::Where>("where", grad_y.dtype(), condition, zero, grad_y));
    }
    return grads;
  }
};

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compare<functors::Equal>("eq", a, b); }
Tensor eq(const Tensor& a, Scalar b) { return compare<functors::Equal>("eq", a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare<functors::NotEqual>("ne", a, b); }
Tensor ne(const Tensor& a, Scalar b) { return compare<functors::NotEqual>("ne", a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare<functors::Less>("lt", a, b); }
Tensor lt(const Tensor& a, Scalar b) { return compare<functors::Less>("lt", a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare<functors::LessEqual>("le", a, b); }
Tensor le(const Tensor& a, Scalar b) { return compare<functors::LessEqual>("le", a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare<functors::Greater>("gt", a, b); }
Tensor gt(const Tensor& a, Scalar b) { return compare<functors::Greater>("gt", a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare<functors::GreaterEqual>("ge", a, b); }
Tensor ge(const Tensor& a, Scalar b) { return compare<functors::GreaterEqual>("ge", a, b); }
Tensor logical_not(const Tensor& x) {
  ops::check_defined("logical_not", "x", x);
  return classify<functors::LogicalNot>("logical_not", x);
}
// Integers and bool are always finite.
Tensor isfinite(const Tensor& x) {
  ops::check_defined("isfinite", "x", x);
  if (!is_floating_point(x.dtype())) return full(x.sizes(), true, DType::kBool, x.device());
  return classify<functors::IsFinite>("isfinite", x);
}
Tensor isnan(const Tensor& x) {
  ops::check_defined("isnan", "x", x);
  if (!is_floating_point(x.dtype())) return full(x.sizes(), false, DType::kBool, x.device());
  return classify<functors::IsNan>("isnan", x);
}
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  ops::check_defined("where", "condition", condition, "a", a, "b", b);
  return Where::apply(condition, a, b);
}

}  // namespace tutti
