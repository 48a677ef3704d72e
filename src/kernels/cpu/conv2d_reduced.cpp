// SPDX-License-Identifier: Apache-2.0
// f32 convolutions on bf16 multipliers, as matmul_reduced.cpp does it for products. "high" stacks high and low halves along
// the dim that is summed over: input channels forward, output channels for the data gradient. The weight gradient stays f32 in "high":
// oneDNN's bf16 kernels for it are not three times as fast (measured: 0.8 to 1.0 of the f32 speed).
#include "kernels/cpu/conv2d.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/onednn/adapter.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

using onednn::Purpose;

namespace {

constexpr std::int64_t kLeastChannels = 32;  // fewer leave AMX tiles half empty
constexpr std::int64_t kLeastWork = 1 << 22;
constexpr std::int64_t kLeastPositions =
    6144;  // of the result: with fewer, splitting the weight costs what AMX gains

std::uint16_t* split_space(Purpose purpose, std::int64_t elements) {
  return static_cast<std::uint16_t*>(onednn::workspace(purpose, static_cast<std::size_t>(elements * 3) * 2));
}

// An image split pixel by pixel along its channels.
void* split_channels(const tutti_view& image, Purpose copy, Purpose split) {
  const tutti_view dense = channels_last_input(image, TUTTI_F32, copy);
  const std::int64_t channels = image.sizes[1], count = numel(image);
  std::uint16_t* out = split_space(split, count);
  split_bf16(data_of<float>(dense), channels, count / channels, channels, false, out);
  return out;
}

// A weight [o, c, kh, kw] as [o, 3 c, kh, kw] (along_inputs) or [3 o, c, kh, kw].
tutti_weight split_weight(const tutti_view& weight, bool along_inputs) {
  tutti_view split = is_contiguous(weight) ? weight : contiguous_copy(weight, TUTTI_F32, Purpose::kRight);
  const std::int64_t count = numel(weight), outer = along_inputs ? weight.sizes[0] : 1;
  std::uint16_t* out = split_space(Purpose::kRightSplit, count);
  split_bf16(data_of<float>(split), count / outer, outer, count / outer, true, out);
  split.data = out;
  split.dtype = TUTTI_BF16;
  split.sizes[along_inputs ? 1 : 0] *= 3;
  std::int64_t stride = 1;
  for (int d = 3; d >= 0; --d) {
    split.strides[d] = stride;
    stride *= split.sizes[d];
  }
  return {split, nullptr, 0};
}

}  // namespace

bool conv2d_reduced_gains(const Convolution& sizes, std::int32_t precision) {
  if (sizes.n * sizes.image_work() < kLeastWork || sizes.groups != 1) return false;
  if (sizes.c < kLeastChannels || sizes.o < kLeastChannels || sizes.kh * sizes.kw == 1) return false;
  if (precision >= 2) return onednn::capabilities().bf16;
  return onednn::capabilities().amx_bf16 && sizes.n * sizes.oh * sizes.ow >= kLeastPositions;
}

void conv2d_reduced_forward(Convolution conv, const tutti_conv2d& call) {
  conv.dtype = TUTTI_BF16;
  if (call.precision >= 2) {
    conv.x = channels_last_input(call.x, TUTTI_BF16, Purpose::kLeft).data;
    conv.weight = {contiguous_copy(call.weight.view, TUTTI_BF16, Purpose::kRight), nullptr, 0};
  } else {
    conv.x = split_channels(call.x, Purpose::kLeft, Purpose::kLeftSplit);
    conv.weight = split_weight(call.weight.view, true);
    conv.c *= 3;
  }
  conv2d_onednn_forward(conv);
}

void conv2d_reduced_backward_data(Convolution conv, const tutti_conv2d& call) {
  conv.dtype = TUTTI_BF16;
  if (call.precision >= 2) {
    conv.y = channels_last_input(call.y, TUTTI_BF16, Purpose::kLeft).data;
    conv.weight = {contiguous_copy(call.weight.view, TUTTI_BF16, Purpose::kRight), nullptr, 0};
  } else {
    conv.y = split_channels(call.y, Purpose::kLeft, Purpose::kLeftSplit);
    conv.weight = split_weight(call.weight.view, false);
    conv.o *= 3;
  }
  conv2d_onednn_backward_data(conv);
}

void conv2d_reduced_backward_weight(Convolution conv, const tutti_conv2d& call, const WeightGradients& out) {
  conv.dtype = TUTTI_BF16;
  conv.x = channels_last_input(call.x, TUTTI_BF16, Purpose::kLeft).data;
  conv.y = channels_last_input(call.y, TUTTI_BF16, Purpose::kRight).data;
  conv2d_onednn_backward_weight(conv, out);
}

}  // namespace tutti::cpu
