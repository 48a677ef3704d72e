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

// The factor of add() must be a number of the dtype's kind.
inline void check_alpha(const char* name, DType dtype, double alpha) {
  const bool fits =
      is_floating_point(dtype) || alpha == 1 ||
      (dtype != DType::kBool && alpha >= -0x1p63 && alpha < 0x1p63 && alpha == std::trunc(alpha));
  TUTTI_CHECK(fits, DTypeError, name, ": alpha = ", alpha, " is no factor for ", dtype,
              "; convert to a floating dtype first");
}

// x * factor, outside autograd.
inline Tensor times(const Tensor& x, double factor) {
  dispatch::Pointwise call{dispatch::kFunctor<functors::Mul>, "mul", x.dtype(), x.dtype()};
  call.scalar_input = 1;
  call.scalar = factor;
  return dispatch::pointwise(call, {&x});
}

}  // namespace tutti::ops
