// SPDX-License-Identifier: Apache-2.0
// Tensor's differentiable views: they share memory with their input. Each op: forward above backward; members last.
#include "ops/dispatch.hpp"
#include "tutti/autograd/function.hpp"

namespace tutti {

namespace {

using autograd::Function;

struct FromSizes {
  Dims sizes;
};

// g seen in the input's sizes; copies only if the strides of g leave no other way.
Tensor in_sizes(const Tensor& grad, const Dims& sizes) {
  return raw::view(raw::can_view(grad, sizes) ? grad : raw::contiguous(grad), sizes);
}

struct View : Function<View> {
  using State = FromSizes;
  static Tensor forward(Context& ctx, const Tensor& x, const Dims& sizes) {
    if (ctx.recording()) ctx.state().sizes = x.sizes();
    return raw::view(x, sizes);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) { return in_sizes(grad_y, ctx.state().sizes); }
};

// One slice of x.  dx = zeros with g in that slice.
struct Select : Function<Select> {
  struct State {
    Dims sizes;
    int dim = 0;
    std::int64_t index = 0;
  };
  static Tensor forward(Context& ctx, const Tensor& x, int dim, std::int64_t index) {
    if (ctx.recording()) ctx.state() = {x.sizes(), dim, index};
    return raw::select(x, dim, index);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    const State& state = ctx.state();
    Tensor grad_x = zeros(state.sizes, grad_y.dtype(), grad_y.device());
    raw::copy(raw::select(grad_x, state.dim, state.index), grad_y);
    return grad_x;
  }
};

struct SliceView : Function<SliceView> {
  struct State {
    Dims sizes;
    int dim = 0;
    std::int64_t start = 0, stop = 0, step = 1;
  };
  static Tensor forward(Context& ctx, const Tensor& x, int dim, std::int64_t start, std::int64_t stop,
                        std::int64_t step) {
    if (ctx.recording()) ctx.state() = {x.sizes(), dim, start, stop, step};
    return raw::slice(x, dim, start, stop, step);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    const State& state = ctx.state();
    Tensor grad_x = zeros(state.sizes, grad_y.dtype(), grad_y.device());
    raw::copy(raw::slice(grad_x, state.dim, state.start, state.stop, state.step), grad_y);
    return grad_x;
  }
};

struct Transpose : Function<Transpose> {
  struct State {
    int dim0 = 0, dim1 = 0;
  };
  static Tensor forward(Context& ctx, const Tensor& x, int dim0, int dim1) {
    ctx.state() = {dim0, dim1};
    return raw::transpose(x, dim0, dim1);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return raw::transpose(grad_y, ctx.state().dim0, ctx.state().dim1);
  }
};

struct Permute : Function<Permute> {
  struct State {
    Dims inverse;
  };
  static Tensor forward(Context& ctx, const Tensor& x, const Dims& dims) {
    Tensor y = raw::permute(x, dims);
    if (ctx.recording()) {
      Dims inverse = Dims::filled(dims.size(), 0);
      for (int i = 0; i < dims.size(); ++i)
        inverse[raw::normalize_dim(static_cast<int>(dims[i]), dims.size(), "permute")] = i;
      ctx.state().inverse = inverse;
    }
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return raw::permute(grad_y, ctx.state().inverse);
  }
};

// x repeated along dims of size 1, without a copy.  dx = g summed over them.
struct Expand : Function<Expand> {
  using State = FromSizes;
  static Tensor forward(Context& ctx, const Tensor& x, const Dims& sizes) {
    if (ctx.recording()) ctx.state().sizes = x.sizes();
    return raw::expand(x, sizes);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return raw::sum_to_size(grad_y, ctx.state().sizes);
  }
};

struct Squeeze : Function<Squeeze> {
  using State = FromSizes;
  static Tensor forward(Context& ctx, const Tensor& x, std::optional<int> dim) {
    if (ctx.recording()) ctx.state().sizes = x.sizes();
    return dim ? raw::squeeze(x, *dim) : raw::squeeze(x);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) { return in_sizes(grad_y, ctx.state().sizes); }
};

struct Unsqueeze : Function<Unsqueeze> {
  using State = FromSizes;
  static Tensor forward(Context& ctx, const Tensor& x, int dim) {
    if (ctx.recording()) ctx.state().sizes = x.sizes();
    return raw::unsqueeze(x, dim);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) { return in_sizes(grad_y, ctx.state().sizes); }
};

}  // namespace

Tensor Tensor::view(const Dims& sizes) const { return View::apply(*this, sizes); }
Tensor Tensor::select(int dim, std::int64_t index) const { return Select::apply(*this, dim, index); }
Tensor Tensor::slice(int dim, std::int64_t start, std::int64_t stop, std::int64_t step) const {
  return SliceView::apply(*this, dim, start, stop, step);
}
Tensor Tensor::narrow(int dim, std::int64_t start, std::int64_t length) const {
  const std::int64_t extent = size(dim);
  const std::int64_t first = start < 0 ? start + extent : start;
  TUTTI_CHECK(first >= 0 && first <= extent && length >= 0 && length <= extent - first, IndexError,
              "narrow: [", start, ", ", start, " + ", length, ") lies outside dim ", dim, " of shape ",
              sizes());
  return slice(dim, first, first + length);
}
Tensor Tensor::transpose(int dim0, int dim1) const { return Transpose::apply(*this, dim0, dim1); }
Tensor Tensor::t() const {
  TUTTI_CHECK(dim() <= 2, ShapeError, "t: wanted at most 2 dims, given shape ", sizes(), "; use transpose");
  return dim() < 2 ? *this : transpose(0, 1);
}
Tensor Tensor::permute(const Dims& dims) const { return Permute::apply(*this, dims); }
Tensor Tensor::expand(const Dims& sizes) const { return Expand::apply(*this, sizes); }
Tensor Tensor::squeeze() const { return Squeeze::apply(*this, std::optional<int>()); }
Tensor Tensor::squeeze(int dim) const { return Squeeze::apply(*this, std::optional<int>(dim)); }
Tensor Tensor::unsqueeze(int dim) const { return Unsqueeze::apply(*this, dim); }

Tensor Tensor::reshape(const Dims& sizes) const {
  const Dims wanted = raw::infer_size(sizes, numel());
  return raw::can_view(*this, wanted) ? view(wanted) : contiguous().view(wanted);
}
Tensor Tensor::flatten(int start_dim, int end_dim) const {
  if (dim() == 0) return reshape({1});
  const int start = raw::normalize_dim(start_dim, dim(), "flatten");
  const int end = raw::normalize_dim(end_dim, dim(), "flatten");
  TUTTI_CHECK(start <= end, ShapeError, "flatten: start_dim ", start_dim, " comes after end_dim ", end_dim,
              " in shape ", sizes());
  Dims flat;
  std::int64_t middle = 1;
  for (int d = 0; d < dim(); ++d) {
    if (d >= start && d <= end) {
      middle *= sizes()[d];
      if (d == end) flat.push_back(middle);
    } else {
      flat.push_back(sizes()[d]);
    }
  }
  return reshape(flat);
}

}  // namespace tutti
