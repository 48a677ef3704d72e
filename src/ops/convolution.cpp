// SPDX-License-Identifier: Apache-2.0
// Convolution. Forward above backward; the public function last.
#include "tutti/ops/convolution.hpp"

#include "ops/dispatch.hpp"
#include "ops/matmul_support.hpp"
#include "ops/op_support.hpp"
#include "ops/option_checks.hpp"
#include "ops/window.hpp"
#include "tutti/autograd/function.hpp"

namespace tutti {

namespace {

using autograd::CastPolicy;
using autograd::Function;

void fill_pair(std::int32_t (&pair)[2], Size2d size) {
  pair[0] = size.height;
  pair[1] = size.width;
}

struct Geometry {
  Conv2dFunctionOptions options;
  void fill(tutti_conv2d& args) const {
    fill_pair(args.stride, options.stride);
    fill_pair(args.padding, options.padding);
    fill_pair(args.dilation, options.dilation);
    args.groups = options.groups;
    args.epilogue = TUTTI_EPILOGUE_NONE;
    args.precision = ops::current_precision();
    args.beta = 0;
    args.bias.data = nullptr;
  }
};

ops::Windows windows_of(const Tensor& x, const Tensor& weight, const Conv2dFunctionOptions& o) {
  return {x.sizes(), weight.size(2), weight.size(3), o.stride, o.padding, o.dilation};
}

// y = x * w + b (cross-correlation).  dx = transposed convolution of g with w, dw = correlation of x with g, db = sum of g.
struct Conv2d : Function<Conv2d> {
  static constexpr CastPolicy kCast = CastPolicy::kLowerPrecision;
  using State = Geometry;

  static Tensor channels_last(const Dims& sizes, const Tensor& like) {
    return empty_strided(sizes, raw::channels_last_strides(sizes), like.dtype(), like.device());
  }
  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Conv2dFunctionOptions& o) {
    ctx.state().options = o;
    ctx.save(x, weight);
    const ops::Windows windows = windows_of(x, weight, o);
    Tensor y = channels_last({x.size(0), weight.size(0), windows.height.count(), windows.width.count()}, x);
    tutti_conv2d args;
    args.stream = dispatch::stream_of(x.device());
    ctx.state().fill(args);
    raw::fill_view(args.x, x);
    ops::fill_weight(args.weight, weight, true);
    if (bias.defined()) raw::fill_view(args.bias, bias);
    raw::fill_view(args.y, y);
    dispatch::check(x.device(), dispatch::backend_of(x.device()).kernels.conv2d_forward(&args), "conv2d");
    return y;
  }
  static std::array<Tensor, 3> backward(Context& ctx, const Tensor& grad_y) {
    const Tensor x = ctx.saved(0);
    const Tensor weight = ctx.saved(1);
    const tutti_kernel_functions& kernels = dispatch::backend_of(x.device()).kernels;
    tutti_conv2d args;
    args.stream = dispatch::stream_of(x.device());
    ctx.state().fill(args);
    raw::fill_view(args.y, grad_y);
    std::array<Tensor, 3> grads;
    // The weights first: their gradient is what the other ranks wait for.
    if (ctx.needs_input_grad(1) || ctx.needs_input_grad(2)) {
      auto destination = ctx.grad_destination(1);
      grads[1] = destination ? destination->tensor : empty(weight.sizes(), weight.dtype(), weight.device());
      args.beta = destination && destination->accumulate ? 1 : 0;
      if (ctx.needs_input_grad(2)) {
        // beta holds for the bias as well.
        grads[2] = args.beta != 0 ? zeros({weight.size(0)}, weight.dtype(), weight.device())
                                  : empty({weight.size(0)}, weight.dtype(), weight.device());
        raw::fill_view(args.bias, grads[2]);
      }
      raw::fill_view(args.x, x);
      args.weight = {raw::view_of(grads[1]), nullptr, 0};
      dispatch::check(x.device(), kernels.conv2d_backward_weight(&args), "conv2d");
      if (!ctx.needs_input_grad(1)) grads[1] = Tensor();
      args.bias.data = nullptr;
      args.beta = 0;
    }
    if (ctx.needs_input_grad(0)) {
      grads[0] = x.is_contiguous() && x.size(1) > 1 ? empty(x.sizes(), x.dtype(), x.device())
                                                    : channels_last(x.sizes(), x);
      raw::fill_view(args.x, grads[0]);
      ops::fill_weight(args.weight, weight, true);
      dispatch::check(x.device(), kernels.conv2d_backward_data(&args), "conv2d");
    }
    return grads;
  }
};

// Checks the options, and replaces those that kernels may not be able to compute with by others of the same effect.
Conv2dFunctionOptions checked_geometry(const Tensor& x, const Tensor& weight, Conv2dFunctionOptions options) {
  ops::check_convolution("conv2d", options.stride, options.padding, options.dilation);
  TUTTI_CHECK(weight.size(2) > 0 && weight.size(3) > 0, ShapeError, "conv2d: the kernel is empty, weight ",
              weight.sizes());
  const ops::Windows windows = windows_of(x, weight, options);
  windows.check("conv2d", x.sizes(), weight.size(0), x.dtype(), "the kernel of weight ", weight.sizes());
  options.stride = windows.stride();
  options.dilation = windows.dilation();
  return options;
}

void check_operands(const Tensor& x, const Tensor& weight, const Tensor& bias, int groups) {
  TUTTI_CHECK(x.dim() == 4, ShapeError, "conv2d: x must be [N, C, H, W] or [C, H, W], given ", x.sizes());
  TUTTI_CHECK(weight.dim() == 4, ShapeError, "conv2d: weight must be [O, C / groups, kh, kw], given ",
              weight.sizes());
  TUTTI_CHECK(x.dtype() == weight.dtype() && (!bias.defined() || bias.dtype() == x.dtype()), DTypeError,
              "conv2d: x, weight and bias must have one dtype, given ", x.dtype(), " and ", weight.dtype(),
              bias.defined() ? concat(" and ", bias.dtype()) : std::string());
  TUTTI_CHECK(is_floating_point(x.dtype()), DTypeError, "conv2d: wanted a floating dtype, given ", x.dtype());
  TUTTI_CHECK(x.device() == weight.device(), DeviceError, "conv2d: x is on ", x.device(), ", weight on ",
              weight.device());
  TUTTI_CHECK(!bias.defined() || x.device() == bias.device(), DeviceError, "conv2d: x is on ", x.device(),
              ", bias on ", bias.device());
  TUTTI_CHECK(groups > 0 && weight.size(0) % groups == 0 && x.size(1) == weight.size(1) * groups, ShapeError,
              "conv2d: x ", x.sizes(), " has ", x.size(1), " channels, weight ", weight.sizes(), " with ",
              groups, " groups wants ", weight.size(1) * groups);
  TUTTI_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)), ShapeError,
              "conv2d: bias must be [", weight.size(0), "], given ", bias.sizes());
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dFunctionOptions& options) {
  ops::check_defined("conv2d", "x", x, "weight", weight);
  return ops::with_batch(x, [&](const Tensor& batch) {
    check_operands(batch, weight, bias, options.groups);
    return Conv2d::apply(batch, weight, bias, checked_geometry(batch, weight, options));
  });
}

}  // namespace tutti
