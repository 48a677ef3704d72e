// SPDX-License-Identifier: Apache-2.0
// Reductions. Each op: forward above backward; the public functions last.
#include "tutti/ops/reduction.hpp"

#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "tutti/autograd/function.hpp"
#include "tutti/ops/pointwise.hpp"

namespace tutti {

namespace {

using autograd::CastPolicy;
using autograd::Function;

// A reduced gradient, seen in the shape of the input: size 1 in the reduced dims, then expanded.
Tensor expand_back(const Tensor& grad, const Dims& sizes, std::uint32_t mask, bool keepdim) {
  Tensor kept = grad;
  if (!keepdim) {
    for (int d = 0; d < sizes.size(); ++d) {
      if ((mask >> d & 1U) != 0) kept = raw::unsqueeze(kept, d);
    }
  }
  return raw::expand(kept, sizes);
}

struct ReducedFrom {
  ops::InputMeta input;
  std::uint32_t mask = 0;
  bool keepdim = false;
};

// y = sum over dims.  dx = g, expanded.
struct Sum : Function<Sum> {
  static constexpr CastPolicy kCast = CastPolicy::kFloat32;
  using State = ReducedFrom;
  static Tensor forward(Context& ctx, const Tensor& x, const Dims& dims, bool keepdim) {
    const std::uint32_t mask = raw::dim_mask(dims, x.dim(), "sum");
    ctx.state() = {ops::InputMeta(x), mask, keepdim};
    const DType result = is_floating_point(x.dtype()) ? x.dtype() : DType::kInt64;
    return dispatch::reduce("sum", TUTTI_SUM, x, mask, keepdim, result);
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    const State& from = ctx.state();
    return expand_back(grad_y, from.input.sizes, from.mask, from.keepdim);
  }
};

// y = mean over dims of n elements.  dx = g / n, expanded.
struct Mean : Function<Mean> {
  static constexpr CastPolicy kCast = CastPolicy::kFloat32;
  using State = ReducedFrom;
  static Tensor forward(Context& ctx, const Tensor& x, const Dims& dims, bool keepdim) {
    TUTTI_CHECK(is_floating_point(x.dtype()), DTypeError, "mean: wanted a floating dtype, given ", x.dtype());
    const std::uint32_t mask = raw::dim_mask(dims, x.dim(), "mean");
    ctx.state() = {ops::InputMeta(x), mask, keepdim};
    return dispatch::reduce("mean", TUTTI_MEAN, x, mask, keepdim, x.dtype());
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    const State& from = ctx.state();
    std::int64_t count = 1;
    for (int d = 0; d < from.input.sizes.size(); ++d) {
      if ((from.mask >> d & 1U) != 0) count *= from.input.sizes[d];
    }
    const Tensor scaled = ops::times(grad_y, 1.0 / static_cast<double>(count));
    return expand_back(scaled, from.input.sizes, from.mask, from.keepdim);
  }
};

// y = greatest over dims.  dx = g / k at the k places that equal y.
struct Amax : Function<Amax> {
  using State = ReducedFrom;
  static Tensor forward(Context& ctx, const Tensor& x, const char* name, const Dims& dims, bool keepdim) {
    const std::uint32_t mask = raw::dim_mask(dims, x.dim(), name);
    for (int d = 0; d < x.dim(); ++d) {
      const bool nothing = (mask >> d & 1U) != 0 && x.sizes()[d] == 0;
      TUTTI_CHECK(!nothing, ShapeError, name, ": dim ", d, " of shape ", x.sizes(),
                  " is empty and has no greatest element");
    }
    Tensor y = dispatch::reduce(name, TUTTI_AMAX, x, mask, keepdim, x.dtype());
    ctx.state() = {ops::InputMeta(x), mask, keepdim};
    ctx.save(x, y);
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    const State& from = ctx.state();
    const Dims& sizes = from.input.sizes;
    const Tensor x = ctx.saved(0);
    const Tensor y = expand_back(ctx.saved(1), sizes, from.mask, from.keepdim);
    const Tensor greatest =
        dispatch::pointwise({dispatch::kFunctor<functors::Equal>, "amax", x.dtype(), DType::kBool}, {&x, &y});
    const Tensor ones = raw::to_dtype(greatest, grad_y.dtype());
    const Tensor count = dispatch::reduce("amax", TUTTI_SUM, ones, from.mask, from.keepdim, ones.dtype());
    const Tensor share = dispatch::binary<functors::Div>("amax", grad_y.dtype(), grad_y, count);
    return dispatch::binary<functors::Mul>("amax", grad_y.dtype(), ones,
                                           expand_back(share, sizes, from.mask, from.keepdim));
  }
};

Tensor run_arg_max(const char* name, const Tensor& x, int dim, Tensor* values) {
  TUTTI_CHECK(x.numel() > 0 || x.sizes()[dim] > 0, ShapeError, name, ": dim ", dim, " of shape ", x.sizes(),
              " is empty and has no greatest element");
  Dims kept = x.sizes();
  kept[dim] = 1;
  Tensor indices = empty(kept, DType::kInt64, x.device());
  tutti_arg_reduce args;
  args.stream = dispatch::stream_of(x.device());
  args.dim = dim;
  args.smallest = 0;
  raw::fill_view(args.indices, indices);
  args.values.data = nullptr;
  if (values != nullptr) {
    *values = empty(kept, x.dtype(), x.device());
    raw::fill_view(args.values, *values);
  }
  raw::fill_view(args.in, x);
  dispatch::check(x.device(), dispatch::backend_of(x.device()).kernels.arg_reduce(&args), name);
  return indices;
}

// (values, indices) along dim.  dx = g at the indices.
struct MaxDim : Function<MaxDim> {
  struct State {
    ops::InputMeta input;
    int dim = 0;
    bool keepdim = false;
  };
  static std::pair<Tensor, Tensor> forward(Context& ctx, const Tensor& x, int dim, bool keepdim) {
    const int d = raw::normalize_dim(dim, x.dim(), "max");
    if (x.dim() == 0) return zero_dim(ctx, x, keepdim);
    ctx.state() = {ops::InputMeta(x), d, keepdim};
    Tensor values;
    Tensor indices = run_arg_max("max", x, d, &values);
    ctx.save(indices);
    ctx.mark_non_differentiable(1);
    ctx.set_materialize_grads(false);
    if (keepdim) return {values, raw::alias(indices)};
    return {raw::squeeze(values, d), raw::squeeze(indices, d)};
  }
  static std::pair<Tensor, Tensor> zero_dim(Context& ctx, const Tensor& x, bool keepdim) {
    Tensor indices = zeros({}, DType::kInt64, x.device());
    ctx.state() = {ops::InputMeta(x), 0, keepdim};
    ctx.save(indices);
    ctx.mark_non_differentiable(1);
    ctx.set_materialize_grads(false);
    return {raw::clone(x), raw::alias(indices)};
  }
  static Tensor backward(Context& ctx, const Tensor& grad_values, const Tensor& /*grad_indices*/) {
    if (!grad_values.defined()) return {};
    const State& state = ctx.state();
    if (state.input.sizes.empty()) return grad_values;
    const Tensor indices = ctx.saved(0);
    const Tensor grad = state.keepdim ? grad_values : raw::unsqueeze(grad_values, state.dim);
    // One-hot of the indices along dim: positions [1, n, 1] == indices [.., 1, ..].
    const std::int64_t count = state.input.sizes[state.dim];
    Dims shape = Dims::filled(state.input.sizes.size(), 1);
    shape[state.dim] = count;
    const Tensor positions = raw::view(arange(0, count, 1, DType::kInt64, grad.device()), shape);
    const Tensor hit = dispatch::pointwise(
        {dispatch::kFunctor<functors::Equal>, "max", DType::kInt64, DType::kBool}, {&indices, &positions});
    const Tensor zero = zeros({}, grad.dtype(), grad.device());
    return dispatch::ternary<functors::Where>("max", grad.dtype(), hit, grad, zero);
  }
};

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  ops::check_defined("sum", "x", x);
  return Sum::apply(x, dims, keepdim);
}
Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  ops::check_defined("mean", "x", x);
  return Mean::apply(x, dims, keepdim);
}
Tensor amax(const Tensor& x, const Dims& dims, bool keepdim) {
  ops::check_defined("amax", "x", x);
  return Amax::apply(x, "amax", dims, keepdim);
}
Tensor max(const Tensor& x) {
  ops::check_defined("max", "x", x);
  return Amax::apply(x, "max", Dims{}, false);
}
std::pair<Tensor, Tensor> max(const Tensor& x, int dim, bool keepdim) {
  ops::check_defined("max", "x", x);
  return MaxDim::apply(x, dim, keepdim);
}

Tensor argmax(const Tensor& x) {
  ops::check_defined("argmax", "x", x);
  TUTTI_CHECK(x.numel() > 0, ShapeError, "argmax: an empty tensor of shape ", x.sizes(),
              " has no greatest element");
  const Tensor flat = raw::view(raw::contiguous(x), {x.numel()});
  return raw::view(run_arg_max("argmax", flat, 0, nullptr), {});
}

Tensor argmax(const Tensor& x, int dim, bool keepdim) {
  ops::check_defined("argmax", "x", x);
  const int d = raw::normalize_dim(dim, x.dim(), "argmax");
  if (x.dim() == 0) return zeros({}, DType::kInt64, x.device());
  const Tensor indices = run_arg_max("argmax", x, d, nullptr);
  return keepdim ? indices : raw::squeeze(indices, d);
}

}  // namespace tutti
