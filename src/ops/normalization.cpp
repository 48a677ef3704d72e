// SPDX-License-Identifier: Apache-2.0
// Batch norm and dropout. Each op: forward above backward; the public functions last.
#include "tutti/ops/normalization.hpp"

#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "ops/option_checks.hpp"
#include "tutti/autograd/function.hpp"
#include "tutti/autograd/guards.hpp"

namespace tutti {

namespace {

using autograd::CastPolicy;
using autograd::Function;

void view_or_null(tutti_view& view, const Tensor& tensor) {
  view.data = nullptr;
  if (tensor.defined()) raw::fill_view(view, tensor);
}

// x^ = (x - mean) / sqrt(var + eps), y = w x^ + b.
// db = sum g, dw = sum g x^, dx = w / sqrt(var + eps) (g - (db + x^ dw) / n); in eval mode dx = g w / sqrt(var + eps).
struct BatchNorm : Function<BatchNorm> {
  static constexpr CastPolicy kCast = CastPolicy::kAsInput;
  struct State {
    BatchNormFunctionOptions options;
    DType weight_dtype = DType::kFloat32;
    bool has_weight = false;
    bool has_bias = false;
    std::int64_t channels = 0;
  };

  static tutti_batch_norm arguments(const State& state, Device device) {
    tutti_batch_norm args;
    args.stream = dispatch::stream_of(device);
    args.momentum = state.options.momentum;
    args.eps = state.options.eps;
    args.training = state.options.training ? 1 : 0;
    for (tutti_view* view :
         {&args.x, &args.weight, &args.bias, &args.running_mean, &args.running_var, &args.y, &args.save_mean,
          &args.save_invstd, &args.grad_y, &args.grad_x, &args.grad_weight, &args.grad_bias}) {
      view->data = nullptr;
    }
    return args;
  }

  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Tensor& running_mean, const Tensor& running_var,
                        const BatchNormFunctionOptions& options) {
    const std::int64_t channels = x.size(1);
    ctx.state() = {options, weight.defined() ? weight.dtype() : x.dtype(), weight.defined(), bias.defined(),
                   channels};
    tutti_batch_norm args = arguments(ctx.state(), x.device());
    Tensor y = empty_like(x);
    const DType statistics = x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
    const Tensor mean = empty({channels}, statistics, x.device());
    const Tensor invstd = empty({channels}, statistics, x.device());
    raw::fill_view(args.x, x);
    view_or_null(args.weight, weight);
    view_or_null(args.bias, bias);
    view_or_null(args.running_mean, running_mean);
    view_or_null(args.running_var, running_var);
    raw::fill_view(args.y, y);
    raw::fill_view(args.save_mean, mean);
    raw::fill_view(args.save_invstd, invstd);
    dispatch::check(x.device(), dispatch::backend_of(x.device()).kernels.batch_norm_forward(&args),
                    "batch_norm");
    if (options.training && running_mean.defined()) {
      raw::bump_version(running_mean);
      raw::bump_version(running_var);
    }
    if (options.training) {
      ctx.save(x, weight, mean, invstd);
    } else {
      ctx.save(x, weight, running_mean, running_var);
    }
    return y;
  }

  static std::array<Tensor, 5> backward(Context& ctx, const Tensor& grad_y) {
    const State& state = ctx.state();
    const Tensor x = ctx.saved(0);
    const Tensor weight = ctx.saved(1);
    tutti_batch_norm args = arguments(state, x.device());
    raw::fill_view(args.x, x);
    view_or_null(args.weight, weight);
    raw::fill_view(state.options.training ? args.save_mean : args.running_mean, ctx.saved(2));
    raw::fill_view(state.options.training ? args.save_invstd : args.running_var, ctx.saved(3));
    raw::fill_view(args.grad_y, grad_y);
    std::array<Tensor, 5> grads;
    if (ctx.needs_input_grad(0)) {
      grads[0] = empty_like(x);
      raw::fill_view(args.grad_x, grads[0]);
    }
    if (state.has_weight && ctx.needs_input_grad(1)) {
      grads[1] = empty({state.channels}, state.weight_dtype, x.device());
      raw::fill_view(args.grad_weight, grads[1]);
    }
    if (state.has_bias && ctx.needs_input_grad(2)) {
      grads[2] = empty({state.channels}, state.weight_dtype, x.device());
      raw::fill_view(args.grad_bias, grads[2]);
    }
    dispatch::check(x.device(), dispatch::backend_of(x.device()).kernels.batch_norm_backward(&args),
                    "batch_norm");
    return grads;
  }
};

// y = x m / (1 - p) with a mask m that is 1 with probability 1 - p.  dx = g m / (1 - p), the mask drawn again.
struct Dropout : Function<Dropout> {
  struct State {
    PhiloxState random;
    double p = 0;
  };
  static Tensor run(const Tensor& x, const State& state) {
    Tensor y = empty_like(x);
    tutti_dropout args;
    args.stream = dispatch::stream_of(x.device());
    args.philox = {state.random.seed, state.random.stream, state.random.offset};
    args.p = state.p;
    raw::fill_view(args.out, y);
    raw::fill_view(args.in, x);
    dispatch::check(x.device(), dispatch::backend_of(x.device()).kernels.dropout(&args), "dropout");
    return y;
  }
  static Tensor forward(Context& ctx, const Tensor& x, double p, Generator& generator) {
    ctx.state() = {generator.reserve(static_cast<std::uint64_t>(x.numel())), p};
    return run(x, ctx.state());
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) { return run(grad_y, ctx.state()); }
};

void check_channel_vector(const char* what, const Tensor& tensor, const Tensor& x) {
  if (!tensor.defined()) return;
  TUTTI_CHECK(tensor.dim() == 1 && tensor.size(0) == x.size(1), ShapeError, "batch_norm: ", what,
              " must be [", x.size(1), "] for x ", x.sizes(), ", given ", tensor.sizes());
  TUTTI_CHECK(tensor.device() == x.device(), DeviceError, "batch_norm: x is on ", x.device(), ", ", what,
              " on ", tensor.device());
}

// Training writes both statistics, channel by channel while it reads the others.
void check_statistics(const Tensor& running_mean, const Tensor& running_var, const Tensor& x,
                      const Tensor& weight, const Tensor& bias) {
  raw::check_writable(running_mean, "batch_norm: running_mean");
  raw::check_writable(running_var, "batch_norm: running_var");
  const auto check_disjoint = [](const char* written, const Tensor& out, const char* read, const Tensor& in) {
    TUTTI_CHECK(!in.defined() || raw::memory_is_disjoint(out, in), ShapeError, "batch_norm: ", written,
                ", which training writes, shares memory with ", read, "; clone() it first");
  };
  check_disjoint("running_var", running_var, "running_mean", running_mean);
  check_disjoint("running_mean", running_mean, "x", x);
  check_disjoint("running_var", running_var, "x", x);
  check_disjoint("running_mean", running_mean, "weight", weight);
  check_disjoint("running_var", running_var, "weight", weight);
  check_disjoint("running_mean", running_mean, "bias", bias);
  check_disjoint("running_var", running_var, "bias", bias);
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                  const Tensor& weight, const Tensor& bias, const BatchNormFunctionOptions& options) {
  ops::check_defined("batch_norm", "x", x);
  TUTTI_CHECK(x.dim() >= 2, ShapeError, "batch_norm: x must be [N, C, ...], given ", x.sizes());
  TUTTI_CHECK(is_floating_point(x.dtype()), DTypeError, "batch_norm: wanted a floating dtype, given ",
              x.dtype());
  ops::check_normalization("batch_norm", options.momentum, options.eps);
  TUTTI_CHECK(running_mean.defined() == running_var.defined(), ValueError,
              "batch_norm: running_mean and running_var come together or not at all");
  check_channel_vector("running_mean", running_mean, x);
  check_channel_vector("running_var", running_var, x);
  check_channel_vector("weight", weight, x);
  check_channel_vector("bias", bias, x);
  BatchNormFunctionOptions effective = options;
  if (!running_mean.defined()) effective.training = true;
  TUTTI_CHECK(!effective.training || x.numel() > x.size(1) || x.numel() == 0, ShapeError,
              "batch_norm: training needs more than one value per channel, given x ", x.sizes());
  if (effective.training && running_mean.defined())
    check_statistics(running_mean, running_var, x, weight, bias);
  // The statistics of this batch are in there already.
  const bool leaves_statistics = effective.training && autograd::recomputing();
  return BatchNorm::apply(x, weight, bias, leaves_statistics ? Tensor() : running_mean,
                          leaves_statistics ? Tensor() : running_var, effective);
}

Tensor dropout(const Tensor& x, double p, bool training, Generator* generator) {
  ops::check_defined("dropout", "x", x);
  ops::check_probability("dropout", p);
  TUTTI_CHECK(is_floating_point(x.dtype()), DTypeError, "dropout: wanted a floating dtype, given ",
              x.dtype());
  if (!training || p == 0) return x;
  return Dropout::apply(x, p, generator != nullptr ? *generator : default_generator());
}

}  // namespace tutti
