// SPDX-License-Identifier: Apache-2.0
// Pools. Each op: forward above backward; the public functions last.
#include <limits>
#include <utility>

#include "autograd/meta.hpp"
#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "ops/option_checks.hpp"
#include "ops/relu.hpp"
#include "ops/window.hpp"
#include "tutti/autograd/function.hpp"
#include "tutti/autograd/guards.hpp"
#include "tutti/ops/convolution.hpp"

namespace tutti {

namespace {

using autograd::Function;

// What both pools share: the window, and x's shape and layout for the gradient.
struct Window {
  Size2d kernel, stride, padding, dilation = 1;
  bool count_include_pad = true;
  int divisor_override = 0;
  bool ceil_mode = false;
  bool relu_gradient = false;
  Dims sizes, strides;

  void fill(tutti_pool2d& args) const {
    const auto set = [](std::int32_t(&pair)[2], Size2d size) {
      pair[0] = size.height;
      pair[1] = size.width;
    };
    set(args.kernel, kernel);
    set(args.stride, stride);
    set(args.padding, padding);
    set(args.dilation, dilation);
    args.count_include_pad = count_include_pad ? 1 : 0;
    args.divisor_override = divisor_override;
    args.relu_gradient = relu_gradient ? 1 : 0;
  }
};

template <class Options>
Window make_window(const char* name, const Tensor& x, const Options& options, Size2d dilation) {
  const Size2d kernel = options.kernel_size;
  TUTTI_CHECK(x.dim() == 4, ShapeError, name, ": x must be [N, C, H, W] or [C, H, W], given ", x.sizes());
  ops::check_window(name, kernel, options.stride, options.padding, dilation);
  const Size2d stride = options.stride == Size2d() ? kernel : options.stride;
  // Places in a window are counted in 32 bits.
  TUTTI_CHECK(std::int64_t{kernel.height} * kernel.width <= std::numeric_limits<std::int32_t>::max(),
              ShapeError, name, ": a window of ", kernel.height, " x ", kernel.width, " has more than ",
              std::numeric_limits<std::int32_t>::max(), " places");
  const ops::Windows windows(x.sizes(), kernel.height, kernel.width, stride, options.padding, dilation,
                             options.ceil_mode);
  windows.check(name, x.sizes(), x.size(1), x.dtype(), "a window of ", kernel.height, " x ", kernel.width);
  Window window;
  window.kernel = kernel;
  window.stride = windows.stride();
  window.padding = options.padding;
  window.dilation = windows.dilation();
  window.ceil_mode = options.ceil_mode;
  window.sizes = x.sizes();
  window.strides = raw::dense_strides(x);
  return window;
}

Tensor allocate_output(const Window& w, const Tensor& x, DType dtype) {
  const ops::Windows windows(x.sizes(), w.kernel.height, w.kernel.width, w.stride, w.padding, w.dilation,
                             w.ceil_mode);
  const Dims sizes{x.size(0), x.size(1), windows.height.count(), windows.width.count()};
  const bool last = !x.is_contiguous() && x.is_contiguous(MemoryFormat::kChannelsLast);
  return last ? empty_strided(sizes, raw::channels_last_strides(sizes), dtype, x.device())
              : empty(sizes, dtype, x.device());
}

// y = greatest of each window.  dx = g at the greatest (the first of equal ones). With relu_gradient, x is what relu made of an
// earlier x, whose gradient this is: g at the greatest where that is above 0.
struct MaxPool2d : Function<MaxPool2d> {
  using State = Window;
  static Tensor forward(Context& ctx, const Tensor& x, const Window& window) {
    ctx.state() = window;
    Tensor y = allocate_output(window, x, x.dtype());
    const bool small = window.kernel.height * window.kernel.width <= 255;
    const Tensor indices = allocate_output(window, x, small ? DType::kUInt8 : DType::kInt32);
    ctx.save(indices);
    tutti_pool2d args;
    args.stream = dispatch::stream_of(x.device());
    window.fill(args);
    raw::fill_view(args.x, x);
    raw::fill_view(args.y, y);
    raw::fill_view(args.indices, indices);
    dispatch::check(x.device(), dispatch::backend_of(x.device()).kernels.max_pool2d_forward(&args),
                    "max_pool2d");
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    const State& window = ctx.state();
    Tensor grad_x = empty_strided(window.sizes, window.strides, grad_y.dtype(), grad_y.device());
    const Tensor indices = ctx.saved(0);
    tutti_pool2d args;
    args.stream = dispatch::stream_of(grad_y.device());
    window.fill(args);
    raw::fill_view(args.x, grad_x);
    raw::fill_view(args.y, grad_y);
    raw::fill_view(args.indices, indices);
    dispatch::check(grad_y.device(), dispatch::backend_of(grad_y.device()).kernels.max_pool2d_backward(&args),
                    "max_pool2d");
    return grad_x;
  }
};

// y = mean of each window.  dx = g / window's size, added over the windows.
struct AvgPool2d : Function<AvgPool2d> {
  using State = Window;
  static Tensor forward(Context& ctx, const Tensor& x, const Window& window) {
    ctx.state() = window;
    Tensor y = allocate_output(window, x, x.dtype());
    tutti_pool2d args;
    args.stream = dispatch::stream_of(x.device());
    window.fill(args);
    raw::fill_view(args.x, x);
    raw::fill_view(args.y, y);
    args.indices.data = nullptr;
    dispatch::check(x.device(), dispatch::backend_of(x.device()).kernels.avg_pool2d_forward(&args),
                    "avg_pool2d");
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    const State& window = ctx.state();
    Tensor grad_x = empty_strided(window.sizes, window.strides, grad_y.dtype(), grad_y.device());
    tutti_pool2d args;
    args.stream = dispatch::stream_of(grad_y.device());
    window.fill(args);
    raw::fill_view(args.x, grad_x);
    raw::fill_view(args.y, grad_y);
    args.indices.data = nullptr;
    dispatch::check(grad_y.device(), dispatch::backend_of(grad_y.device()).kernels.avg_pool2d_backward(&args),
                    "avg_pool2d");
    return grad_x;
  }
};

bool is_relu(const autograd::Node& node) {
  return dynamic_cast<const autograd::detail::FunctionNode<ops::Relu>*>(&node) != nullptr ||
         dynamic_cast<const autograd::detail::FunctionNode<ops::ReluInPlace>*>(&node) != nullptr;
}

void check_floating(const char* name, const Tensor& x) {
  ops::check_defined(name, "x", x);
  TUTTI_CHECK(is_floating_point(x.dtype()), DTypeError, name, ": wanted a floating dtype, given ", x.dtype());
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const MaxPool2dOptions& options) {
  check_floating("max_pool2d", x);
  return ops::with_batch(x, [&](const Tensor& batch) {
    return MaxPool2d::apply(batch, make_window("max_pool2d", batch, options, options.dilation));
  });
}
Tensor max_pool2d(Tensor&& x, const MaxPool2dOptions& options) {
  if (!x.defined() || x.dim() != 4 || !autograd::grad_enabled()) return max_pool2d(std::as_const(x), options);
  check_floating("max_pool2d", x);
  Window window = make_window("max_pool2d", x, options, options.dilation);
  const Tensor taken = std::move(x);
  window.relu_gradient = autograd::absorb_producer(taken, is_relu);
  return MaxPool2d::apply(taken, window);
}

Tensor avg_pool2d(const Tensor& x, const AvgPool2dOptions& options) {
  check_floating("avg_pool2d", x);
  ops::check_divisor("avg_pool2d", options.divisor_override);
  return ops::with_batch(x, [&](const Tensor& batch) {
    Window window = make_window("avg_pool2d", batch, options, 1);
    window.count_include_pad = options.count_include_pad;
    window.divisor_override = options.divisor_override;
    return AvgPool2d::apply(batch, window);
  });
}

}  // namespace tutti
