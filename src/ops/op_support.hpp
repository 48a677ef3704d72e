// SPDX-License-Identifier: Apache-2.0
// What several ops share.
#pragma once

#include <cmath>

#include "ops/dispatch.hpp"

namespace tutti::ops {

// Shape and dtype of an input, kept so that its gradient can be given that shape and dtype.
struct InputMeta {
  Dims sizes;
  DType dtype = DType::kFloat32;

  InputMeta() = default;
  explicit InputMeta(const Tensor& input) : sizes(input.sizes()), dtype(input.dtype()) {}
  // Sums over the dims that were broadcast and converts.
  Tensor reduce(const Tensor& grad) const {
    if (grad.sizes() == sizes) return grad.dtype() == dtype ? grad : raw::to_dtype(grad, dtype);
    return raw::to_dtype(raw::sum_to_size(grad, sizes), dtype);
  }
};

// Error naming operation and operand if a tensor is undefined: check_defined("add", "a", a, "b", b).
inline void check_defined(const char* /*name*/) {}
template <class... Rest>
void check_defined(const char* name, const char* operand, const Tensor& tensor, const Rest&... rest) {
  TUTTI_CHECK(tensor.defined(), Error, name, ": ", operand, " is undefined");
  check_defined(name, rest...);
}

// The factor of add() must be a number of the dtype's kind and range.
inline void check_alpha(const char* name, DType dtype, double alpha) {
  if (is_floating_point(dtype) || alpha == 1) return;
  TUTTI_CHECK(dtype != DType::kBool && std::isfinite(alpha) && alpha == std::trunc(alpha), DTypeError, name,
              ": alpha = ", alpha, " is no factor for ", dtype, "; convert to a floating dtype first");
  raw::check_number(name, dtype, alpha, raw::Negatives::kWrap);
}

// bool has no difference: neither of two tensors nor of one and a number.
inline void check_has_difference(const char* name, DType a, DType b) {
  TUTTI_CHECK(a != DType::kBool || b != DType::kBool, DTypeError, name,
              ": bool has no difference; use ne() or logical_not()");
}
inline void check_has_difference(const char* name, DType tensor) {
  check_has_difference(name, tensor, tensor);
}

// x to the power of a number, in the dtype, which must hold the number if it is an integer one.
inline dispatch::Pointwise power_call(const char* name, DType dtype, Scalar exponent) {
  raw::check_number(name, dtype, exponent);
  constexpr double kExact = 0x1p53;  // beyond it a double, which parameters are, may be another integer
  if (is_floating_point(dtype) || exponent.to_double() < kExact)
    return {dispatch::kFunctor<functors::PowScalar>, name, dtype, dtype, {exponent.to_double()}};
  dispatch::Pointwise call{dispatch::kFunctor<functors::Pow>, name, dtype, dtype};
  call.scalar_input = 1;
  call.scalar = exponent;
  return call;
}

// Of an op on images: [C, H, W] stands for a batch of one.
template <class Op>
Tensor with_batch(const Tensor& x, const Op& op) {
  return x.dim() == 3 ? op(x.unsqueeze(0)).squeeze(0) : op(x);
}

// x * factor, outside autograd.
inline Tensor times(const Tensor& x, double factor) {
  dispatch::Pointwise call{dispatch::kFunctor<functors::Mul>, "mul", x.dtype(), x.dtype()};
  call.scalar_input = 1;
  call.scalar = factor;
  return dispatch::pointwise(call, {&x});
}

}  // namespace tutti::ops
