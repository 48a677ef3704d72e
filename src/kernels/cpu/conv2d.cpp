// SPDX-License-Identifier: Apache-2.0
// Convolutions: checks, dense operands, and the choice of the route.
#include "kernels/cpu/conv2d.hpp"

#include <cstring>

#include "core/integers.hpp"
#include "core/parallel_for.hpp"
#include "kernels/cpu/isa/matmul_kernels.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/onednn/adapter.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

using onednn::Purpose;

void copy_or_throw(const tutti_view& out, const tutti_view& in) {
  tutti_copy call{};
  call.out = out;
  call.in = in;
  const tutti_status status = copy(&call);
  if (status != TUTTI_OK) throw KernelError(status, "conv2d: an operand could not be copied");
}

namespace {

tutti_view dense_like(const tutti_view& view, std::int32_t dtype, bool channels_last, Purpose purpose) {
  constexpr int kChannelsLast[] = {1, 3, 2, 0};
  tutti_view dense = view;
  dense.dtype = dtype;
  std::int64_t stride = 1;
  for (int i = 0; i < view.ndim; ++i) {
    const int d = channels_last ? kChannelsLast[i] : view.ndim - 1 - i;
    dense.strides[d] = stride;
    stride *= view.sizes[d];
  }
  dense.data = onednn::workspace(purpose, static_cast<std::size_t>(stride * element_size(dtype)));
  return dense;
}

}  // namespace

tutti_view channels_last_input(const tutti_view& view, std::int32_t dtype, Purpose purpose) {
  if (view.dtype == dtype && is_channels_last(view)) return view;
  const tutti_view dense = dense_like(view, dtype, true, purpose);
  copy_or_throw(dense, view);
  return dense;
}

tutti_view channels_last_result(const tutti_view& view, std::int32_t dtype, Purpose purpose) {
  return view.dtype == dtype && is_channels_last(view) ? view : dense_like(view, dtype, true, purpose);
}

void store_result(const tutti_view& view, const tutti_view& result) {
  if (result.data != view.data) copy_or_throw(view, result);
}

tutti_view contiguous_copy(const tutti_view& view, std::int32_t dtype, Purpose purpose) {
  const tutti_view dense = dense_like(view, dtype, false, purpose);
  copy_or_throw(dense, view);
  return dense;
}

namespace {

bool shapes_fit(const tutti_conv2d& call) {
  const tutti_view &x = call.x, &w = call.weight.view, &y = call.y;
  if (x.ndim != 4 || w.ndim != 4 || y.ndim != 4 || call.groups < 1) return false;
  for (int d = 0; d < 2; ++d) {
    if (call.stride[d] < 1 || call.dilation[d] < 1 || call.padding[d] < 0 || w.sizes[2 + d] < 1) return false;
    const std::int64_t reach = call.dilation[d] * (w.sizes[2 + d] - 1) + 1;
    if (reach > x.sizes[2 + d] + std::int64_t{2} * call.padding[d]) return false;
    if (y.sizes[2 + d] !=
        window_count(x.sizes[2 + d], w.sizes[2 + d], call.stride[d], call.padding[d], call.dilation[d]))
      return false;
  }
  if (call.bias.data && (call.bias.ndim != 1 || call.bias.sizes[0] != w.sizes[0])) return false;
  return x.sizes[0] == y.sizes[0] && w.sizes[0] == y.sizes[1] && x.sizes[1] == w.sizes[1] * call.groups &&
         w.sizes[0] % call.groups == 0 && x.sizes[1] > 0 && w.sizes[0] > 0;
}

void check(const tutti_conv2d& call, const char* name) {
  if (!shapes_fit(call)) {
    throw KernelError(
        TUTTI_INVALID,
        concat(name, ": sizes do not fit: x ", describe(call.x), ", weight ", describe(call.weight.view),
               ", y ", describe(call.y), ", stride ", call.stride[0], "x", call.stride[1], ", padding ",
               call.padding[0], "x", call.padding[1], ", dilation ", call.dilation[0], "x", call.dilation[1],
               ", groups ", call.groups));
  }
}

void check_dtypes(const tutti_conv2d& call, const char* name, const tutti_view& in, const tutti_view& other,
                  const tutti_view& out) {
  const bool wide = out.dtype == TUTTI_F32 && is_floating(in.dtype) && in.dtype != TUTTI_F64;
  if (is_floating(in.dtype) && in.dtype == other.dtype && (out.dtype == in.dtype || wide)) return;
  throw KernelError(
      TUTTI_UNSUPPORTED,
      concat(
          name,
          ": wanted floating operands of one dtype (the result may be float32 for half precisions), given x ",
          dtype_text(call.x.dtype), ", weight ", dtype_text(call.weight.view.dtype), ", y ",
          dtype_text(call.y.dtype)));
}

// The dtype that a call's products are computed in.
std::int32_t compute_dtype(std::int32_t dtype) {
  if (dtype == TUTTI_BF16 && !onednn::capabilities().bf16) return TUTTI_F32;
  if (dtype == TUTTI_F16 && !onednn::capabilities().f16) return TUTTI_F32;
  return dtype;
}

Convolution sizes_of(const tutti_conv2d& call) {
  Convolution conv;
  conv.n = call.x.sizes[0], conv.c = call.x.sizes[1], conv.h = call.x.sizes[2], conv.w = call.x.sizes[3];
  conv.o = call.y.sizes[1], conv.oh = call.y.sizes[2], conv.ow = call.y.sizes[3];
  conv.kh = call.weight.view.sizes[2], conv.kw = call.weight.view.sizes[3];
  conv.groups = call.groups;
  for (int d = 0; d < 2; ++d) {
    conv.stride[d] = call.stride[d];
    conv.padding[d] = call.padding[d];
    conv.dilation[d] = call.dilation[d];
  }
  return conv;
}

// The weight as it is, or converted; other than dense strides are copied too.
tutti_weight take_weight(const tutti_weight& weight, std::int32_t dtype) {
  if (weight.view.dtype == dtype && (is_contiguous(weight.view) || is_channels_last(weight.view)))
    return weight;
  return {contiguous_copy(weight.view, dtype, Purpose::kRight), nullptr, 0};
}

void take_bias(Convolution& conv, const tutti_view& bias, std::int32_t dtype) {
  if (!bias.data) return;
  const bool as_it_is = bias.dtype == dtype && is_contiguous(bias);
  conv.bias = as_it_is ? bias.data : contiguous_copy(bias, dtype, Purpose::kBias).data;
  conv.bias_dtype = dtype;
}

bool reduces_precision(const tutti_conv2d& call, const Convolution& conv) {
  return call.precision > 0 && conv2d_reduced_gains(conv, call.precision);
}

void forward(const tutti_conv2d& call) {
  check(call, "conv2d");
  check_dtypes(call, "conv2d", call.x, call.weight.view, call.y);
  if (numel(call.y) == 0) return;
  Convolution conv = sizes_of(call);
  conv.epilogue = call.epilogue;
  conv.dtype = compute_dtype(call.x.dtype);
  conv.out_dtype = conv.dtype == call.x.dtype ? call.y.dtype : conv.dtype;
  take_bias(conv, call.bias, conv.dtype);
  const tutti_view y = channels_last_result(call.y, conv.out_dtype, Purpose::kResult);
  conv.y = y.data;
  if (call.x.dtype == TUTTI_F32 && reduces_precision(call, conv)) {
    conv2d_reduced_forward(conv, call);
  } else {
    conv.x = channels_last_input(call.x, conv.dtype, Purpose::kLeft).data;
    conv.weight = take_weight(call.weight, conv.dtype);
    conv.dtype == TUTTI_F64 ? conv2d_im2col_forward(conv) : conv2d_onednn_forward(conv);
  }
  store_result(call.y, y);
}

void backward_data(const tutti_conv2d& call) {
  check(call, "conv2d_backward_data");
  check_dtypes(call, "conv2d_backward_data", call.y, call.weight.view, call.x);
  if (numel(call.x) == 0) return;
  Convolution conv = sizes_of(call);
  conv.dtype = compute_dtype(call.y.dtype);
  conv.out_dtype = conv.dtype == call.y.dtype ? call.x.dtype : conv.dtype;
  const tutti_view x = channels_last_result(call.x, conv.out_dtype, Purpose::kResult);
  conv.x = x.data;
  if (call.y.dtype == TUTTI_F32 && reduces_precision(call, conv)) {
    conv2d_reduced_backward_data(conv, call);
  } else {
    conv.y = channels_last_input(call.y, conv.dtype, Purpose::kLeft).data;
    conv.weight = take_weight(call.weight, conv.dtype);
    conv.dtype == TUTTI_F64 ? conv2d_im2col_backward_data(conv) : conv2d_onednn_backward_data(conv);
  }
  store_result(call.x, x);
}

void add(const tutti_view& sum, const void* gradient) {
  parallel_for(0, numel(sum), 1 << 14, [&](std::int64_t begin, std::int64_t end) {
    if (sum.dtype == TUTTI_F64) {
      matmul_kernels().add_f64(data_of<double>(sum) + begin, static_cast<const double*>(gradient) + begin,
                               end - begin);
    } else {
      matmul_kernels().add_f32(data_of<float>(sum) + begin, static_cast<const float*>(gradient) + begin,
                               end - begin);
    }
  });
}

// out = gradient + beta * out; the gradient lies contiguously in f32 (f64 for f64), maybe already in out.
void store_gradient(const tutti_view& out, const void* gradient, bool accumulate) {
  if (gradient == out.data) return;
  const std::int32_t dtype = out.dtype == TUTTI_F64 ? TUTTI_F64 : TUTTI_F32;
  if (accumulate && out.dtype == dtype && is_contiguous(out)) return add(out, gradient);
  tutti_view sum = dense_like(out, dtype, false, Purpose::kColumns);
  if (accumulate) {
    copy_or_throw(sum, out);
    add(sum, gradient);
  } else {
    sum.data = const_cast<void*>(gradient);
  }
  copy_or_throw(out, sum);
}

// Where a gradient is computed: in its place if nothing stands against it.
void* gradient_place(const tutti_view& out, std::int32_t dtype, bool accumulate, void* workspace) {
  return !accumulate && out.dtype == dtype && is_contiguous(out) ? out.data : workspace;
}

void backward_weight(const tutti_conv2d& call) {
  const char* const name = "conv2d_backward_weight";
  check(call, name);
  check_dtypes(call, name, call.x, call.y, call.weight.view);
  Convolution conv = sizes_of(call);
  conv.dtype = compute_dtype(call.x.dtype);
  const std::int32_t sum_dtype = conv.dtype == TUTTI_F64 ? TUTTI_F64 : TUTTI_F32;
  const bool accumulate = call.beta != 0.0;
  const std::int64_t count = numel(call.weight.view), size = element_size(sum_dtype);
  char* place = static_cast<char*>(
      onednn::workspace(Purpose::kResult, static_cast<std::size_t>((count + conv.o) * size)));
  WeightGradients gradients;
  gradients.weight = gradient_place(call.weight.view, sum_dtype, accumulate, place);
  if (call.bias.data) gradients.bias = gradient_place(call.bias, sum_dtype, accumulate, place + count * size);
  if (conv.n == 0) {
    std::memset(gradients.weight, 0, static_cast<std::size_t>(count * size));
    if (gradients.bias) std::memset(gradients.bias, 0, static_cast<std::size_t>(conv.o * size));
  } else if (call.x.dtype == TUTTI_F32 && call.precision >= 2 && reduces_precision(call, conv)) {
    conv2d_reduced_backward_weight(conv, call, gradients);
  } else {
    conv.x = channels_last_input(call.x, conv.dtype, Purpose::kLeft).data;
    conv.y = channels_last_input(call.y, conv.dtype, Purpose::kRight).data;
    conv.dtype == TUTTI_F64 ? conv2d_im2col_backward_weight(conv, gradients)
                            : conv2d_onednn_backward_weight(conv, gradients);
  }
  store_gradient(call.weight.view, gradients.weight, accumulate);
  if (call.bias.data) store_gradient(call.bias, gradients.bias, accumulate);
}

}  // namespace

tutti_status conv2d_forward(const tutti_conv2d* call) noexcept {
  return guarded([&] { forward(*call); });
}
tutti_status conv2d_backward_data(const tutti_conv2d* call) noexcept {
  return guarded([&] { backward_data(*call); });
}
tutti_status conv2d_backward_weight(const tutti_conv2d* call) noexcept {
  return guarded([&] { backward_weight(*call); });
}

}  // namespace tutti::cpu
