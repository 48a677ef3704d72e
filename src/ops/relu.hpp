// SPDX-License-Identifier: Apache-2.0
// relu's operations, which max_pool2d knows: it takes over the gradient of a relu that only it sees.
#pragma once

#include "ops/dispatch.hpp"
#include "tutti/autograd/function.hpp"

namespace tutti::ops {

// y = max(x, 0).  dx = g where y > 0.
struct Relu : autograd::Function<Relu> {
  static Tensor forward(Context& ctx, const Tensor& x) {
    TUTTI_CHECK(x.dtype() != DType::kBool, DTypeError, "relu: bool is not a number");
    Tensor y = dispatch::unary<functors::Relu>("relu", x);
    ctx.save(y);
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return dispatch::unary_grad<functors::ReluGrad>("relu", grad_y, ctx.saved(0));
  }
};

// self = max(self, 0).  dself = g where the result > 0.
struct ReluInPlace : autograd::Function<ReluInPlace> {
  static constexpr const char* kName = "relu_";
  static Tensor forward(Context& ctx, const Tensor& self) {
    ctx.mark_dirty(0);
    dispatch::unary_into<functors::Relu>(kName, self);
    ctx.save(self);
    return self;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return dispatch::unary_grad<functors::ReluGrad>(kName, grad_y, ctx.saved(0));
  }
};

}  // namespace tutti::ops
