// SPDX-License-Identifier: Apache-2.0
// From tensors to the backend's table: check, promote, allocate, call. No autograd here.
#pragma once

#include <array>
#include <initializer_list>
#include <span>

#include "backend/backend.h"
#include "kernels/functors/list.hpp"
#include "tensor/raw.hpp"
#include "tutti/core/error.hpp"
#include "tutti/device/stream.hpp"

namespace tutti::dispatch {

// The table of the tensor's device and the stream its kernels go to.
const tutti_backend& backend_of(Device device);
inline tutti_stream stream_of(Device device) {
  return device.is_cpu() ? nullptr : current_stream(device).handle();
}

// Turns a status into an exception that names the op.
void check(Device device, tutti_status status, const char* op);

// What a pointwise call computes in and gives back.
struct Pointwise {
  int functor;       // position in functors::Pointwise
  const char* name;  // for messages
  DType compute;     // inputs are converted to it first
  DType result;      // compute, or bool for comparisons
  std::array<double, 4> params{};
  int scalar_input = -1;
  Scalar scalar = 0.0;
};
// Inputs are broadcast; the result keeps the layout of dense inputs (channels-last stays channels-last).
Tensor pointwise(const Pointwise& call, std::initializer_list<const Tensor*> inputs);
// The same, but the result may take the memory of `spent`, an input that the caller does not need any more, if nobody else
// can see it: half the traffic to memory of a large gradient, and no allocation for a small one.
Tensor pointwise_reusing(const Tensor& spent, const Pointwise& call,
                         std::initializer_list<const Tensor*> inputs);
// Writes into `out`, which has the broadcast shape; out may be one of the inputs.
void pointwise_into(const Tensor& out, const Pointwise& call, std::initializer_list<const Tensor*> inputs);

template <class F>
inline constexpr int kFunctor = functors::index_in<F>(functors::Pointwise{});

// Integers and bool become float32.
inline DType floating(DType dtype) { return is_floating_point(dtype) ? dtype : DType::kFloat32; }

template <class F>
Tensor unary(const char* name, const Tensor& x, double param = 0) {
  return pointwise({kFunctor<F>, name, x.dtype(), x.dtype(), {param}}, {&x});
}
// self = f(self)
template <class F>
void unary_into(const char* name, const Tensor& self, double param = 0) {
  pointwise_into(self, {kFunctor<F>, name, self.dtype(), self.dtype(), {param}}, {&self});
}
// x integer: computed in float32.
template <class F>
Tensor unary_floating(const char* name, const Tensor& x, double param = 0) {
  const DType dtype = floating(x.dtype());
  return pointwise({kFunctor<F>, name, dtype, dtype, {param}}, {&x});
}
template <class F>
Tensor binary(const char* name, DType dtype, const Tensor& a, const Tensor& b, double param = 0) {
  return pointwise({kFunctor<F>, name, dtype, dtype, {param}}, {&a, &b});
}
// Gradient functors: f(grad_y, saved), all in grad_y's dtype. Backward's gradient is spent by it.
template <class F>
Tensor unary_grad(const char* name, const Tensor& grad_y, const Tensor& saved, double param = 0) {
  return pointwise_reusing(grad_y, {kFunctor<F>, name, grad_y.dtype(), grad_y.dtype(), {param}},
                           {&grad_y, &saved});
}
template <class F>
Tensor ternary(const char* name, DType dtype, const Tensor& a, const Tensor& b, const Tensor& c) {
  return pointwise({kFunctor<F>, name, dtype, dtype}, {&a, &b, &c});
}

// out[...] = reduction of x over the dims of the mask (bit d: dim d).
Tensor reduce(const char* name, int op, const Tensor& x, std::uint32_t mask, bool keepdim, DType result);

}  // namespace tutti::dispatch
