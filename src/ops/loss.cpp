// SPDX-License-Identifier: Apache-2.0
// Softmax and cross-entropy. Each op: forward above backward; the public functions last.
#include "tutti/ops/loss.hpp"

#include "ops/dispatch.hpp"
#include "ops/op_support.hpp"
#include "tutti/autograd/function.hpp"
#include "tutti/ops/pointwise.hpp"
#include "tutti/ops/reduction.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti {

namespace {

using autograd::CastPolicy;
using autograd::Function;

struct SoftmaxDim {
  int dim = 0;
};

Tensor run_softmax(const char* name, const Tensor& x, int dim, bool log) {
  Tensor y = empty_like(x);
  tutti_softmax args;
  args.stream = dispatch::stream_of(x.device());
  args.dim = dim;
  args.log = log ? 1 : 0;
  raw::fill_view(args.out, y);
  raw::fill_view(args.in, x);
  args.grad.data = nullptr;
  dispatch::check(x.device(), dispatch::backend_of(x.device()).kernels.softmax_forward(&args), name);
  return y;
}

Tensor run_softmax_backward(const char* name, const Tensor& y, const Tensor& grad_y, int dim, bool log) {
  Tensor grad_x = empty_like(y);
  tutti_softmax args;
  args.stream = dispatch::stream_of(y.device());
  args.dim = dim;
  args.log = log ? 1 : 0;
  raw::fill_view(args.out, grad_x);
  raw::fill_view(args.in, y);
  raw::fill_view(args.grad, grad_y);
  dispatch::check(y.device(), dispatch::backend_of(y.device()).kernels.softmax_backward(&args), name);
  return grad_x;
}

// y = e^x / sum e^x.  dx = y (g - sum(g y)).
struct Softmax : Function<Softmax> {
  static constexpr CastPolicy kCast = CastPolicy::kFloat32;
  using State = SoftmaxDim;
  static Tensor forward(Context& ctx, const Tensor& x, int dim) {
    ctx.state().dim = dim;
    Tensor y = run_softmax("softmax", x, dim, false);
    ctx.save(y);
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return run_softmax_backward("softmax", ctx.saved(0), grad_y, ctx.state().dim, false);
  }
};

// y = x - log sum e^x.  dx = g - e^y sum g.
struct LogSoftmax : Function<LogSoftmax> {
  static constexpr CastPolicy kCast = CastPolicy::kFloat32;
  using State = SoftmaxDim;
  static Tensor forward(Context& ctx, const Tensor& x, int dim) {
    ctx.state().dim = dim;
    Tensor y = run_softmax("log_softmax", x, dim, true);
    ctx.save(y);
    return y;
  }
  static Tensor backward(Context& ctx, const Tensor& grad_y) {
    return run_softmax_backward("log_softmax", ctx.saved(0), grad_y, ctx.state().dim, true);
  }
};

// loss_n = w_t (-(1 - s) log p_t) - s / C sum_c w_c log p_c,  p = softmax(logits);  d logits = w (p - q) g.
struct CrossEntropy : Function<CrossEntropy> {
  static constexpr CastPolicy kCast = CastPolicy::kFloat32;
  struct State {
    std::int64_t ignore_index = -100;
    double label_smoothing = 0;
  };
  static tutti_cross_entropy arguments(const State& state, const Tensor& logits, const Tensor& targets,
                                       const Tensor& weight, const Tensor& log_sum_exp,
                                       const Tensor& row_weights) {
    tutti_cross_entropy args;
    args.stream = dispatch::stream_of(logits.device());
    args.ignore_index = state.ignore_index;
    args.label_smoothing = state.label_smoothing;
    raw::fill_view(args.logits, logits);
    raw::fill_view(args.targets, targets);
    args.weight.data = nullptr;
    if (weight.defined()) raw::fill_view(args.weight, weight);
    raw::fill_view(args.log_sum_exp, log_sum_exp);
    raw::fill_view(args.row_weights, row_weights);
    args.losses.data = nullptr;
    args.grad_losses.data = nullptr;
    args.grad_logits.data = nullptr;
    return args;
  }
  static Tensor forward(Context& ctx, const Tensor& logits, const Tensor& targets,
                        const CrossEntropyOptions& options) {
    ctx.state() = {options.ignore_index, options.label_smoothing};
    const DType wide = logits.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
    const Dims rows{logits.size(0)};
    const Tensor losses = empty(rows, wide, logits.device());
    const Tensor log_sum_exp = empty(rows, wide, logits.device());
    const Tensor row_weights = empty(rows, wide, logits.device());
    tutti_cross_entropy args =
        arguments(ctx.state(), logits, targets, options.weight, log_sum_exp, row_weights);
    raw::fill_view(args.losses, losses);
    dispatch::check(logits.device(),
                    dispatch::backend_of(logits.device()).kernels.cross_entropy_forward(&args),
                    "cross_entropy");
    Tensor denominator;
    Tensor loss = losses;
    if (options.reduction != Reduction::kNone)
      loss = dispatch::reduce("cross_entropy", TUTTI_SUM, losses, 1U, false, wide);
    if (options.reduction == Reduction::kMean) {
      denominator = dispatch::reduce("cross_entropy", TUTTI_SUM, row_weights, 1U, false, wide);
      loss = dispatch::binary<functors::Div>("cross_entropy", wide, loss, denominator);
    }
    ctx.save(logits, targets, options.weight, log_sum_exp, row_weights, denominator);
    return raw::to_dtype(loss, logits.dtype());
  }
  static std::array<Tensor, 2> backward(Context& ctx, const Tensor& grad_loss) {
    const State& state = ctx.state();
    const Tensor logits = ctx.saved(0);
    const Tensor denominator = ctx.saved(5);
    Tensor grad_rows = raw::to_dtype(grad_loss, ctx.saved(3).dtype());
    if (denominator.defined()) {
      grad_rows =
          dispatch::binary<functors::Div>("cross_entropy", denominator.dtype(), grad_rows, denominator);
    }
    Tensor grad_logits = empty(logits.sizes(), logits.dtype(), logits.device());
    tutti_cross_entropy args =
        arguments(state, logits, ctx.saved(1), ctx.saved(2), ctx.saved(3), ctx.saved(4));
    raw::fill_view_broadcast(args.grad_losses, grad_rows, {logits.size(0)});
    raw::fill_view(args.grad_logits, grad_logits);
    dispatch::check(logits.device(),
                    dispatch::backend_of(logits.device()).kernels.cross_entropy_backward(&args),
                    "cross_entropy");
    return {grad_logits, Tensor()};
  }
};

void check_cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  TUTTI_CHECK(logits.dim() >= 2, ShapeError,
              "cross_entropy: logits must be [C], [N, C] or [N, C, ...], given ", logits.sizes());
  TUTTI_CHECK(is_floating_point(logits.dtype()), DTypeError, "cross_entropy: logits must be floating, given ",
              logits.dtype());
  const bool by_class = targets.dtype() == DType::kInt64;
  TUTTI_CHECK(by_class || targets.dtype() == logits.dtype(), DTypeError,
              "cross_entropy: targets must be int64 class indices, or probabilities of the logits' dtype ",
              logits.dtype(), ", given ", targets.dtype());
  Dims expected = logits.sizes();
  if (by_class) expected.erase(1);
  TUTTI_CHECK(targets.sizes() == expected, ShapeError, "cross_entropy: logits ", logits.sizes(), " want ",
              by_class ? "targets " : "probabilities ", expected, ", given ", targets.sizes());
  TUTTI_CHECK(options.label_smoothing >= 0 && options.label_smoothing <= 1, ValueError,
              "cross_entropy: label_smoothing must lie in [0, 1], given ", options.label_smoothing);
  TUTTI_CHECK(targets.device() == logits.device(), DeviceError, "cross_entropy: logits are on ",
              logits.device(), ", targets on ", targets.device());
  const Tensor& weight = options.weight;
  TUTTI_CHECK(!weight.defined() || (weight.dim() == 1 && weight.size(0) == logits.size(1)), ShapeError,
              "cross_entropy: weight must be [", logits.size(1), "], given ",
              weight.defined() ? to_text(weight.sizes()) : "none");
  TUTTI_CHECK(!weight.defined() || weight.device() == logits.device(), DeviceError,
              "cross_entropy: logits are on ", logits.device(), ", weight on ", weight.device());
  TUTTI_CHECK(!weight.defined() || weight.dtype() == logits.dtype(), DTypeError,
              "cross_entropy: weight must have the logits' dtype ", logits.dtype(), ", given ",
              weight.defined() ? weight.dtype() : logits.dtype());
}

// Of rows [N, C] and class indices [N].
Tensor of_classes(const Tensor& rows, const Tensor& targets, const CrossEntropyOptions& options) {
  return CrossEntropy::apply(rows, targets, options);
}

// Of rows [N, C] and their probabilities, by what is recorded: gradients reach both. The mean is over N, whatever the weights.
Tensor of_probabilities(const Tensor& rows, const Tensor& targets, const CrossEntropyOptions& options) {
  const DType wide = rows.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const double smoothing = options.label_smoothing;
  Tensor q = targets.to(wide);
  if (smoothing > 0) q = q * (1 - smoothing) + smoothing / static_cast<double>(rows.size(1));
  if (options.weight.defined()) q = q * options.weight.to(wide);
  const Tensor losses = neg(sum(q * log_softmax(rows.to(wide), 1), {1}));
  switch (options.reduction) {
    case Reduction::kNone: return losses.to(rows.dtype());
    case Reduction::kSum: return sum(losses).to(rows.dtype());
    default: return mean(losses).to(rows.dtype());
  }
}

}  // namespace

Tensor softmax(const Tensor& x, int dim) {
  ops::check_defined("softmax", "x", x);
  TUTTI_CHECK(is_floating_point(x.dtype()), DTypeError, "softmax: wanted a floating dtype, given ",
              x.dtype());
  return Softmax::apply(x, raw::normalize_dim(dim, x.dim(), "softmax"));
}
Tensor log_softmax(const Tensor& x, int dim) {
  ops::check_defined("log_softmax", "x", x);
  TUTTI_CHECK(is_floating_point(x.dtype()), DTypeError, "log_softmax: wanted a floating dtype, given ",
              x.dtype());
  return LogSoftmax::apply(x, raw::normalize_dim(dim, x.dim(), "log_softmax"));
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  ops::check_defined("cross_entropy", "logits", logits, "targets", targets);
  if (logits.dim() == 1) {  // [C]: a batch of one
    const Tensor loss = cross_entropy(logits.unsqueeze(0), targets.unsqueeze(0), options);
    return options.reduction == Reduction::kNone ? loss.squeeze(0) : loss;
  }
  check_cross_entropy(logits, targets, options);
  const auto of_rows = targets.dtype() == DType::kInt64 ? of_classes : of_probabilities;
  if (logits.dim() == 2) return of_rows(logits, targets, options);
  // [N, C, ...] -> rows [N * ..., C]
  Dims order{0}, sizes = logits.sizes();
  for (int d = 2; d < logits.dim(); ++d) order.push_back(d);
  order.push_back(1);
  sizes.erase(1);
  const std::int64_t classes = logits.size(1);
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const auto rows = [&](const Tensor& x) {
    return x.dim() == logits.dim() ? x.permute(order).reshape({count, classes}) : x.reshape({count});
  };
  const Tensor losses = of_rows(rows(logits), rows(targets), options);
  return options.reduction == Reduction::kNone ? losses.view(sizes) : losses;
}

}  // namespace tutti
