// SPDX-License-Identifier: Apache-2.0
// Matrix products. Each op: forward above backward; the public functions last.
#include "tutti/ops/matmul.hpp"

#include <atomic>

#include "ops/dispatch.hpp"
#include "ops/matmul_support.hpp"
#include "ops/op_support.hpp"
#include "tutti/autograd/function.hpp"
#include "tutti/ops/pointwise.hpp"

namespace tutti {

namespace ops {

namespace {
std::atomic<MatmulPrecision>& precision_setting() {
  static std::atomic<MatmulPrecision> setting{MatmulPrecision::kHighest};
  return setting;
}
}  // namespace

int current_precision() noexcept {
  return static_cast<int>(precision_setting().load(std::memory_order_relaxed));
}

void fill_weight(tutti_weight& weight, const Tensor& tensor, bool keep_packed) {
  raw::fill_view(weight.view, tensor);
  // Memory that others can write unseen is packed anew each time.
  const bool seen = !tensor.impl()->storage->exposed.load(std::memory_order_relaxed);
  weight.slot = keep_packed && seen ? raw::packed_slot(tensor) : nullptr;
  weight.version = tensor.version();
}

void product(const char* name, const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias,
             const ProductOptions& options) {
  tutti_matmul args;
  args.stream = dispatch::stream_of(out.device());
  args.epilogue = TUTTI_EPILOGUE_NONE;
  args.precision = current_precision();
  args.beta = options.accumulate ? 1.0 : 0.0;
  raw::fill_view(args.out, out);
  raw::fill_view(args.a, a);
  fill_weight(args.b, b, options.b_is_weight);
  args.bias.data = nullptr;
  if (bias.defined()) raw::fill_view(args.bias, bias);
  dispatch::check(out.device(), dispatch::backend_of(out.device()).kernels.matmul(&args), name);
}

}  // namespace ops

namespace {

using autograd::CastPolicy;
using autograd::Function;

void check_same(const char* name, const Tensor& a, const Tensor& b) {
  TUTTI_CHECK(a.device() == b.device(), DeviceError, name, ": operands on ", a.device(), " and ", b.device());
  TUTTI_CHECK(a.dtype() == b.dtype(), DTypeError, name, ": both operands must have one dtype, given ",
              a.dtype(), " ", a.sizes(), " and ", b.dtype(), " ", b.sizes());
}

Tensor transposed(const Tensor& x) { return raw::transpose(x, -2, -1); }

// c = a b for at least two dims each, batch dims broadcast.  da = g b^T, db = a^T g, summed over broadcast batches.
struct Matmul : Function<Matmul> {
  static constexpr CastPolicy kCast = CastPolicy::kLowerPrecision;

  static Dims batch_of(const Tensor& x) {
    Dims batch;
    for (int d = 0; d + 2 < x.dim(); ++d) batch.push_back(x.sizes()[d]);
    return batch;
  }
  static Tensor multiply(const Tensor& a, const Tensor& b) {
    const Dims batch = broadcast_shapes(batch_of(a), batch_of(b), "matmul");
    Dims a_sizes = batch, b_sizes = batch, c_sizes = batch;
    for (const std::int64_t n : {a.size(-2), a.size(-1)}) a_sizes.push_back(n);
    for (const std::int64_t n : {b.size(-2), b.size(-1)}) b_sizes.push_back(n);
    c_sizes.push_back(a.size(-2));
    c_sizes.push_back(b.size(-1));
    Tensor c = empty(c_sizes, a.dtype(), a.device());
    ops::product("matmul", c, raw::expand(a, a_sizes), raw::expand(b, b_sizes), {}, {});
    return c;
  }
  static Tensor forward(Context& ctx, const Tensor& a, const Tensor& b) {
    ctx.save(a, b);
    return multiply(a, b);
  }
  static std::array<Tensor, 2> backward(Context& ctx, const Tensor& grad) {
    const Tensor a = ctx.saved(0);
    const Tensor b = ctx.saved(1);
    std::array<Tensor, 2> grads;
    if (ctx.needs_input_grad(0)) grads[0] = raw::sum_to_size(multiply(grad, transposed(b)), a.sizes());
    if (ctx.needs_input_grad(1)) grads[1] = raw::sum_to_size(multiply(transposed(a), grad), b.sizes());
    return grads;
  }
};

// y = x w^T + b over the last dim.  dx = g w, dw = g^T x, db = sum of g's rows.
struct Linear : Function<Linear> {
  static constexpr CastPolicy kCast = CastPolicy::kLowerPrecision;

  // x as a matrix: all dims but the last become one.
  static Tensor rows(const Tensor& x) {
    std::int64_t count = 1;
    for (int d = 0; d + 1 < x.dim(); ++d) count *= x.sizes()[d];
    const Dims sizes{count, x.size(-1)};
    return raw::view(raw::can_view(x, sizes) ? x : raw::contiguous(x), sizes);
  }
  static Tensor forward(Context& ctx, const Tensor& x, const Tensor& weight, const Tensor& bias) {
    ctx.save(x, weight);
    Dims sizes = x.sizes();
    sizes[sizes.size() - 1] = weight.size(0);
    Tensor y = empty(sizes, x.dtype(), x.device());
    const Tensor x2 = rows(x);
    ops::product("linear", raw::view(y, {x2.size(0), weight.size(0)}), x2, transposed(weight), bias,
                 {.b_is_weight = true});
    return y;
  }
  static std::array<Tensor, 3> backward(Context& ctx, const Tensor& grad_y) {
    const Tensor x = ctx.saved(0);
    const Tensor weight = ctx.saved(1);
    const Tensor grad = rows(grad_y);
    std::array<Tensor, 3> grads;
    if (ctx.needs_input_grad(1)) {
      auto destination = ctx.grad_destination(1);
      Tensor grad_weight =
          destination ? destination->tensor : empty(weight.sizes(), weight.dtype(), weight.device());
      ops::product("linear", grad_weight, transposed(grad), rows(x), {},
                   {.accumulate = destination && destination->accumulate});
      grads[1] = grad_weight;
    }
    if (ctx.needs_input_grad(2))
      grads[2] = dispatch::reduce("linear", TUTTI_SUM, grad, 1U, false, grad.dtype());
    if (ctx.needs_input_grad(0)) {
      Tensor grad_x = empty(x.sizes(), x.dtype(), x.device());
      ops::product("linear", rows(grad_x), grad, weight, {}, {.b_is_weight = true});
      grads[0] = grad_x;
    }
    return grads;
  }
};

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  ops::check_defined("matmul", "a", a, "b", b);
  TUTTI_CHECK(a.dim() > 0 && b.dim() > 0, ShapeError, "matmul: a 0-dim tensor is no matrix, given shapes ",
              a.sizes(), " and ", b.sizes(), "; use mul");
  check_same("matmul", a, b);
  const std::int64_t inner_b = b.dim() == 1 ? b.size(0) : b.size(-2);
  TUTTI_CHECK(a.size(-1) == inner_b, ShapeError, "matmul: inner sizes differ: ", a.sizes(), " times ",
              b.sizes());
  const Tensor left = a.dim() == 1 ? a.unsqueeze(0) : a;
  const Tensor right = b.dim() == 1 ? b.unsqueeze(1) : b;
  Tensor c = Matmul::apply(left, right);
  if (b.dim() == 1) c = c.squeeze(-1);
  if (a.dim() == 1) c = c.squeeze(b.dim() == 1 ? -1 : -2);
  return c;
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  ops::check_defined("linear", "x", x, "weight", weight);
  TUTTI_CHECK(weight.dim() == 2, ShapeError, "linear: weight must be [out, in], given ", weight.sizes());
  TUTTI_CHECK(x.dim() > 0 && x.size(-1) == weight.size(1), ShapeError, "linear: x has shape ", x.sizes(),
              ", its last size must be the weight's in = ", weight.size(1), " (weight ", weight.sizes(), ")");
  check_same("linear", x, weight);
  if (bias.defined()) {
    TUTTI_CHECK(bias.dim() == 1 && bias.size(0) == weight.size(0), ShapeError, "linear: bias must be [",
                weight.size(0), "], given ", bias.sizes());
    check_same("linear", x, bias);
  }
  return Linear::apply(x, weight, bias);
}

void set_float32_matmul_precision(MatmulPrecision precision) noexcept {
  ops::precision_setting().store(precision, std::memory_order_relaxed);
}
MatmulPrecision float32_matmul_precision() noexcept {
  return ops::precision_setting().load(std::memory_order_relaxed);
}

}  // namespace tutti
