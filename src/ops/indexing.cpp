// SPDX-License-Identifier: Apache-2.0
// Joining and selecting. Each op: forward above backward; the public functions last.
#include "tutti/ops/indexing.hpp"

#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "tutti/autograd/function.hpp"

namespace tutti {

namespace {

using autograd::CastPolicy;
using autograd::Function;

// y = the inputs side by side along dim.  Each dx = its part of g.
struct Cat : Function<Cat> {
  static constexpr CastPolicy kCast = CastPolicy::kPromote;
  struct Part {
    std::int64_t size;
    DType dtype;
  };
  struct State {
    int dim = 0;
    std::vector<Part> parts;
  };
  static Tensor forward(Context& ctx, const std::vector<Tensor>& tensors, int dim, const Dims& sizes,
                        DType dtype) {
    Tensor y = empty(sizes, dtype, tensors[0].device());
    std::int64_t start = 0;
    for (const Tensor& tensor : tensors) {
      const std::int64_t size = tensor.size(dim);
      raw::copy(raw::slice(y, dim, start, start + size, 1), tensor);
      start += size;
      if (ctx.recording()) ctx.state().parts.push_back({size, tensor.dtype()});
    }
    ctx.state().dim = dim;
    return y;
  }
  static std::vector<Tensor> backward(Context& ctx, const Tensor& grad_y) {
    std::vector<Tensor> grads;
    std::int64_t start = 0;
    for (std::size_t i = 0; i < ctx.state().parts.size(); ++i) {
      const Part& part = ctx.state().parts[i];
      Tensor grad;
      if (ctx.needs_input_grad(i)) {
        grad = raw::to_dtype(raw::slice(grad_y, ctx.state().dim, start, start + part.size, 1), part.dtype);
      }
      grads.push_back(grad);
      start += part.size;
    }
    return grads;
  }
};

tutti_index index_arguments(const Tensor& out, const Tensor& in, const Tensor& indices, int dim) {
  tutti_index args;
  args.stream = dispatch::stream_of(out.device());
  args.dim = dim;
  raw::fill_view(args.out, out);
  raw::fill_view(args.in, in);
  raw::fill_view(args.indices, indices);
  return args;
}

// y = x taken at indices along dim.  dx = g added at the indices.
struct IndexSelect : Function<IndexSelect> {
  struct State {
    int dim = 0;
    ops::InputMeta input;
  };
  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& indices, int dim) {
    ctx.state() = {dim, ops::InputMeta(x)};
    ctx.save(indices);
    Dims sizes = x.sizes();
    sizes[dim] = indices.numel();
    Tensor y = empty(sizes, x.dtype(), x.device());
    const tutti_index args = index_arguments(y, x, indices, dim);
    dispatch::check(x.device(), dispatch::backend_of(x.device()).kernels.index_select(&args), "index_select");
    return y;
  }
  static std::array<Tensor, 2> backward(Context& ctx, const Tensor& grad_y) {
    const State& state = ctx.state();
    Tensor grad_x = zeros(state.input.sizes, grad_y.dtype(), grad_y.device());
    const Tensor indices = ctx.saved(0);
    const tutti_index args = index_arguments(grad_x, grad_y, indices, state.dim);
    dispatch::check(grad_x.device(), dispatch::backend_of(grad_x.device()).kernels.index_add(&args),
                    "index_select");
    return {grad_x, Tensor()};
  }
};

void check_defined(const char* name, const std::vector<Tensor>& tensors) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    TUTTI_CHECK(tensors[i].defined(), Error, name, ": tensor ", i, " is undefined");
}

}  // namespace

Tensor cat(const std::vector<Tensor>& tensors, int dim) {
  check_defined("cat", tensors);
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) {
    if (!(tensor.dim() == 1 && tensor.numel() == 0)) parts.push_back(tensor);
  }
  TUTTI_CHECK(!tensors.empty(), ValueError, "cat: no tensors given");
  if (parts.empty()) return tensors[0].clone();
  const Tensor& first = parts[0];
  TUTTI_CHECK(first.dim() > 0, ShapeError, "cat: 0-dim tensors cannot be joined; use stack");
  const int d = raw::normalize_dim(dim, first.dim(), "cat");
  Dims sizes = first.sizes();
  DType dtype = first.dtype();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Tensor& part = parts[i];
    Dims expected = first.sizes();
    if (part.dim() == first.dim()) expected[d] = part.size(d);
    TUTTI_CHECK(part.sizes() == expected, ShapeError, "cat: all sizes but dim ", d,
                " must be equal: tensor 0 has shape ", first.sizes(), ", tensor ", i, " ", part.sizes());
    TUTTI_CHECK(part.device() == first.device(), DeviceError, "cat: tensor 0 is on ", first.device(),
                ", tensor ", i, " on ", part.device());
    TUTTI_CHECK(!__builtin_add_overflow(sizes[d], part.size(d), &sizes[d]), ShapeError,
                "cat: the sizes in dim ", d, " together exceed 63 bits");
    dtype = promote_types(dtype, part.dtype());
  }
  return Cat::apply(parts, d, sizes, dtype);
}

Tensor stack(const std::vector<Tensor>& tensors, int dim) {
  TUTTI_CHECK(!tensors.empty(), ValueError, "stack: no tensors given");
  check_defined("stack", tensors);
  const int d = raw::normalize_new_dim(dim, tensors[0].dim(), "stack");
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TUTTI_CHECK(tensors[i].sizes() == tensors[0].sizes(), ShapeError,
                "stack: all shapes must be equal: tensor 0 has shape ", tensors[0].sizes(), ", tensor ", i,
                " ", tensors[i].sizes());
    parts.push_back(tensors[i].unsqueeze(d));
  }
  return cat(parts, d);
}

Tensor index_select(const Tensor& x, int dim, const Tensor& indices) {
  ops::check_defined("index_select", "x", x, "indices", indices);
  TUTTI_CHECK(indices.dim() <= 1, ShapeError, "index_select: indices must be [K], given ", indices.sizes());
  TUTTI_CHECK(indices.dtype() == DType::kInt64 || indices.dtype() == DType::kInt32, DTypeError,
              "index_select: indices must be int64 or int32, given ", indices.dtype());
  TUTTI_CHECK(x.device() == indices.device(), DeviceError, "index_select: x is on ", x.device(),
              ", indices on ", indices.device());
  if (x.dim() == 0) {
    TUTTI_CHECK(indices.numel() == 1, ShapeError, "index_select: x is 0-dim and takes one index, given ",
                indices.numel());
    return index_select(x.view({1}), dim, indices).view({});
  }
  const int d = raw::normalize_dim(dim, x.dim(), "index_select");
  return IndexSelect::apply(x, indices.dim() == 0 ? raw::view(indices, {1}) : indices, d);
}

}  // namespace tutti
