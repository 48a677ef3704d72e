// SPDX-License-Identifier: Apache-2.0
// Batch norm over all dims but the second one, n values a channel, w weight, b bias:
//   forward            y = (x - mean) * invstd * w + b                        invstd = 1 / sqrt(var + eps), var biased
//   running statistics r = (1 - momentum) * r + momentum * s                  s = mean, or var * n / (n - 1)
//   backward           db = sum dy,  dw = invstd * sum dy * (x - mean)
//     training         dx = w * invstd * (dy - db / n - (x - mean) * invstd * dw / n)
//     evaluation       dx = w * invstd * dy                                   with the running statistics
//                                                                             [Ioffe and Szegedy 2015]
#include <cmath>

#include "kernels/cpu/batch_norm_passes.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/numbers.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {
namespace {

using onednn::Purpose;
using Use = BatchNormOperand::Use;

ChannelNumbers read_channels(const tutti_view& view, std::int64_t channels, double otherwise,
                             CallMemory& memory) {
  ChannelNumbers values(static_cast<std::size_t>(channels), otherwise, &memory);
  if (view.data != nullptr) read_numbers(view.dtype, view.data, view.strides[0], channels, values.data());
  return values;
}
void write_channels(const tutti_view& view, const ChannelNumbers& values) {
  if (view.data == nullptr) return;
  write_numbers(view.dtype, view.data, view.strides[0], static_cast<std::int64_t>(values.size()),
                values.data());
}

struct Statistics {
  ChannelNumbers mean, invstd;
};

Statistics running_statistics(const tutti_batch_norm& call, std::int64_t channels, CallMemory& memory) {
  Statistics result{read_channels(call.running_mean, channels, 0.0, memory),
                    read_channels(call.running_var, channels, 1.0, memory)};
  for (double& value : result.invstd) value = 1.0 / std::sqrt(value + call.eps);
  return result;
}

void update_running(const tutti_view& view, const ChannelNumbers& batch, double momentum,
                    CallMemory& memory) {
  if (view.data == nullptr) return;
  ChannelNumbers values = read_channels(view, static_cast<std::int64_t>(batch.size()), 0.0, memory);
  for (std::size_t c = 0; c < batch.size(); ++c)
    values[c] = (1.0 - momentum) * values[c] + momentum * batch[c];
  write_channels(view, values);
}

Statistics batch_statistics(const tutti_batch_norm& call, const std::pmr::vector<Moments>& moments,
                            CallMemory& memory) {
  Statistics result{ChannelNumbers(moments.size(), &memory), ChannelNumbers(moments.size(), &memory)};
  ChannelNumbers unbiased(moments.size(), &memory);
  for (std::size_t c = 0; c < moments.size(); ++c) {
    result.mean[c] = moments[c].mean;
    result.invstd[c] = 1.0 / std::sqrt(moments[c].squares / moments[c].count + call.eps);
    unbiased[c] = moments[c].squares / (moments[c].count - 1.0);
  }
  update_running(call.running_mean, result.mean, call.momentum, memory);
  update_running(call.running_var, unbiased, call.momentum, memory);
  write_channels(call.save_mean, result.mean);
  write_channels(call.save_invstd, result.invstd);
  return result;
}

template <class N>
void forward(const tutti_batch_norm& call) {
  CallMemory memory;
  const BatchNormShape shape(call.x);
  const BatchNormOperand x(call.x, shape, Use::kRead, Purpose::kLeft);
  const BatchNormOperand y(call.y, shape, Use::kWritten, Purpose::kResult);
  BatchNormPasses<N> passes(call.x.dtype, shape, x, memory);
  passes.add_operand(y);
  const Statistics statistics = call.training != 0 ? batch_statistics(call, passes.moments(), memory)
                                                   : running_statistics(call, shape.channels, memory);
  ChannelNumbers scale = read_channels(call.weight, shape.channels, 1.0, memory);
  const ChannelNumbers shift = read_channels(call.bias, shape.channels, 0.0, memory);
  for (std::size_t c = 0; c < scale.size(); ++c) scale[c] *= statistics.invstd[c];
  passes.normalise(y, statistics.mean, scale, shift);
  y.finish();
}

template <class N>
void backward(const tutti_batch_norm& call) {
  CallMemory memory;
  const BatchNormShape shape(call.x);
  const BatchNormOperand x(call.x, shape, Use::kRead, Purpose::kLeft);
  const BatchNormOperand grad_y(call.grad_y, shape, Use::kRead, Purpose::kRight);
  const BatchNormOperand grad_x(call.grad_x, shape, Use::kWritten, Purpose::kResult);
  BatchNormPasses<N> passes(call.x.dtype, shape, x, memory);
  passes.add_operand(grad_y);
  passes.add_operand(grad_x);
  const bool training = call.training != 0;
  const std::int64_t channels = shape.channels;
  const Statistics statistics = training ? Statistics{read_channels(call.save_mean, channels, 0.0, memory),
                                                      read_channels(call.save_invstd, channels, 1.0, memory)}
                                         : running_statistics(call, channels, memory);
  ChannelNumbers sums(static_cast<std::size_t>(channels), &memory);
  ChannelNumbers dots(sums.size(), &memory);
  const bool wants_parameters = call.grad_weight.data != nullptr || call.grad_bias.data != nullptr;
  if (wants_parameters || (training && grad_x)) passes.grad_sums(grad_y, statistics.mean, sums, dots);
  write_channels(call.grad_bias, sums);
  for (std::size_t c = 0; c < dots.size(); ++c) dots[c] *= statistics.invstd[c];
  write_channels(call.grad_weight, dots);
  if (!grad_x) return;

  ChannelNumbers grad_scale = read_channels(call.weight, channels, 1.0, memory);
  for (std::size_t c = 0; c < dots.size(); ++c) grad_scale[c] *= statistics.invstd[c];
  if (training) {
    ChannelNumbers scale(dots.size(), &memory);
    ChannelNumbers shift(dots.size(), &memory);
    const double count = static_cast<double>(shape.count());
    for (std::size_t c = 0; c < dots.size(); ++c) {
      scale[c] = -grad_scale[c] * statistics.invstd[c] * dots[c] / count;
      shift[c] = -grad_scale[c] * sums[c] / count;
    }
    passes.gradient(grad_y, grad_x, statistics.mean, scale, shift, grad_scale);
  } else {
    passes.scale(grad_y, grad_x, grad_scale);
  }
  grad_x.finish();
}

tutti_status check(const tutti_batch_norm& call, const char* name,
                   std::initializer_list<const tutti_view*> images) {
  if (!is_floating(call.x.dtype)) {
    return fail(TUTTI_UNSUPPORTED, name, ": wanted a floating dtype, given ", dtype_text(call.x.dtype));
  }
  for (const tutti_view* image : images) {
    if (image->data != nullptr && image->dtype != call.x.dtype) {
      return fail(TUTTI_UNSUPPORTED, name, ": wanted images of one dtype, given ", dtype_text(call.x.dtype),
                  " and ", dtype_text(image->dtype));
    }
  }
  for (const tutti_view* parameter :
       {&call.weight, &call.bias, &call.running_mean, &call.running_var, &call.save_mean, &call.save_invstd,
        &call.grad_weight, &call.grad_bias}) {
    if (parameter->data != nullptr && !is_floating(parameter->dtype)) {
      return fail(TUTTI_UNSUPPORTED, name, ": wanted floating parameters and statistics, given ",
                  dtype_text(parameter->dtype));
    }
  }
  if (call.x.ndim < 2) {
    return fail(TUTTI_INVALID, name, ": wanted [N, C] or [N, C, ...], given ", describe(call.x));
  }
  if (call.training == 0 && (call.running_mean.data == nullptr || call.running_var.data == nullptr)) {
    return fail(TUTTI_INVALID, name, ": evaluation needs running_mean and running_var, given none");
  }
  return TUTTI_OK;
}

// No values: no output, and gradients of nothing are 0.
void clear_gradients(const tutti_batch_norm& call) {
  CallMemory memory;
  const ChannelNumbers zeros(static_cast<std::size_t>(call.x.sizes[1]), 0.0, &memory);
  write_channels(call.grad_weight, zeros);
  write_channels(call.grad_bias, zeros);
}

}  // namespace

tutti_status batch_norm_forward(const tutti_batch_norm* call) noexcept {
  return guarded([&] {
    if (const tutti_status status = check(*call, "batch_norm", {&call->y}); status != TUTTI_OK) return status;
    if (numel(call->x) == 0) return TUTTI_OK;
    if (call->training != 0 && numel(call->x) == call->x.sizes[1]) {
      return fail(TUTTI_INVALID, "batch_norm: Expected more than 1 value per channel when training, given ",
                  describe(call->x));
    }
    if (call->x.dtype == TUTTI_F64) {
      forward<double>(*call);
    } else {
      forward<float>(*call);
    }
    return TUTTI_OK;
  });
}

tutti_status batch_norm_backward(const tutti_batch_norm* call) noexcept {
  return guarded([&] {
    const tutti_status status = check(*call, "batch_norm backward", {&call->grad_y, &call->grad_x});
    if (status != TUTTI_OK) return status;
    if (numel(call->x) == 0) {
      clear_gradients(*call);
    } else if (call->x.dtype == TUTTI_F64) {
      backward<double>(*call);
    } else {
      backward<float>(*call);
    }
    return TUTTI_OK;
  });
}

}  // namespace tutti::cpu
