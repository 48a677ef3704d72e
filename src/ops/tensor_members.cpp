// SPDX-License-Identifier: Apache-2.0
// Bodies of Tensor's differentiable members that are not free functions already: conversions and the forwarding ones.
#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "tutti/autograd/function.hpp"
#include "tutti/ops/ops.hpp"

namespace tutti {

namespace {

using autograd::Function;

// y = x in another layout or copied.  dx = g.
struct Contiguous : Function<Contiguous> {
  static Tensor forward(Context&, const Tensor& x, MemoryFormat format) {
    const Tensor y = raw::contiguous(x, format);
    return y.is_same(x) || y.shares_storage(x) ? raw::clone(y) : y;
  }
  static Tensor backward(Context&, const Tensor& grad_y) { return grad_y; }
};
struct Clone : Function<Clone> {
  static Tensor forward(Context&, const Tensor& x) { return raw::clone(x); }
  static Tensor backward(Context&, const Tensor& grad_y) { return grad_y; }
};

// y = x converted.  dx = g converted back.
struct ToDType : Function<ToDType> {
  struct State {
    DType from = DType::kFloat32;
  };
  static Tensor forward(Context& ctx, const Tensor& x, DType dtype) {
    ctx.state().from = x.dtype();
    return raw::to_dtype(x, dtype);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return raw::to_dtype(grad_y, ctx.state().from);
  }
};

Tensor copy_to(const Tensor& x, Device device) {
  Tensor y = empty_strided(x.sizes(), raw::dense_strides(x), x.dtype(), device);
  raw::copy(y, x);
  return y;
}

// y = x on another device.  dx = g copied back.
struct ToDevice : Function<ToDevice> {
  struct State {
    Device from;
  };
  static Tensor forward(Context& ctx, const Tensor& x, Device device) {
    ctx.state().from = x.device();
    return copy_to(x, device);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) { return copy_to(grad_y, ctx.state().from); }
};

}  // namespace

Tensor Tensor::contiguous(MemoryFormat format) const {
  return is_contiguous(format) ? *this : Contiguous::apply(*this, format);
}
Tensor Tensor::clone() const { return Clone::apply(*this); }
Tensor Tensor::to(DType dtype) const {
  TUTTI_CHECK(static_cast<int>(dtype) < kDTypeCount, DTypeError, "to: ", static_cast<int>(dtype),
              " is no dtype");
  return dtype == this->dtype() ? *this : ToDType::apply(*this, dtype);
}
Tensor Tensor::to(Device device, bool /*non_blocking*/) const {
  return device == this->device() ? *this : ToDevice::apply(*this, device);
}

Tensor Tensor::add(const Tensor& other, double alpha) const { return tutti::add(*this, other, alpha); }
Tensor Tensor::sub(const Tensor& other) const { return tutti::sub(*this, other); }
Tensor Tensor::mul(const Tensor& other) const { return tutti::mul(*this, other); }
Tensor Tensor::div(const Tensor& other) const { return tutti::div(*this, other); }
Tensor Tensor::neg() const { return tutti::neg(*this); }
Tensor Tensor::exp() const { return tutti::exp(*this); }
Tensor Tensor::log() const { return tutti::log(*this); }
Tensor Tensor::sqrt() const { return tutti::sqrt(*this); }
Tensor Tensor::tanh() const { return tutti::tanh(*this); }
Tensor Tensor::sigmoid() const { return tutti::sigmoid(*this); }
Tensor Tensor::relu() const { return tutti::relu(*this); }
Tensor Tensor::pow(Scalar exponent) const { return tutti::pow(*this, exponent); }
Tensor Tensor::pow(const Tensor& exponent) const { return tutti::pow(*this, exponent); }
Tensor Tensor::matmul(const Tensor& other) const { return tutti::matmul(*this, other); }
Tensor Tensor::sum() const { return tutti::sum(*this); }
Tensor Tensor::sum(const Dims& dims, bool keepdim) const { return tutti::sum(*this, dims, keepdim); }
Tensor Tensor::mean() const { return tutti::mean(*this); }
Tensor Tensor::mean(const Dims& dims, bool keepdim) const { return tutti::mean(*this, dims, keepdim); }
Tensor Tensor::max() const { return tutti::max(*this); }
std::pair<Tensor, Tensor> Tensor::max(int dim, bool keepdim) const { return tutti::max(*this, dim, keepdim); }
Tensor Tensor::argmax() const { return tutti::argmax(*this); }
Tensor Tensor::argmax(int dim, bool keepdim) const { return tutti::argmax(*this, dim, keepdim); }
Tensor Tensor::softmax(int dim) const { return tutti::softmax(*this, dim); }
Tensor Tensor::log_softmax(int dim) const { return tutti::log_softmax(*this, dim); }
Tensor Tensor::index_select(int dim, const Tensor& indices) const {
  return tutti::index_select(*this, dim, indices);
}

}  // namespace tutti
