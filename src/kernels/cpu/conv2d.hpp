// SPDX-License-Identifier: Apache-2.0
// Inside of the convolutions: a call after its checks, with dense operands, and the routes that run it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "kernels/cpu/onednn/workspace.hpp"

namespace tutti::cpu {

// Sizes of a convolution and operands in the dtype that it is computed in. Images lie in N, H, W, C order without gaps.
struct Convolution {
  std::int32_t dtype = 0;
  std::int32_t out_dtype = 0;  // of what is written: y or the gradient of x
  std::int64_t n = 0, c = 0, h = 0, w = 0;
  std::int64_t o = 0, oh = 0, ow = 0, kh = 0, kw = 0;
  std::int64_t groups = 1;
  std::int64_t stride[2], padding[2], dilation[2];
  std::int32_t epilogue = TUTTI_EPILOGUE_NONE;

  void* x = nullptr;
  void* y = nullptr;
  tutti_weight weight{};  // any dense strides; slot null if it is a copy
  void* bias = nullptr;   // dense
  std::int32_t bias_dtype = 0;

  std::int64_t image_work() const noexcept {
    return oh * ow * o * (c / groups) * kh * kw;
  }  // multiplications
  std::int64_t x_image() const noexcept { return c * h * w; }
  std::int64_t y_image() const noexcept { return o * oh * ow; }
};

// Gradients of weight and bias before they are stored: f32 (f64 for f64), contiguous in shape [o, c / groups, kh, kw].
struct WeightGradients {
  void* weight = nullptr;
  void* bias = nullptr;  // null: not wanted
};

// oneDNN: f32, and bf16 and f16 where the CPU has them.
void conv2d_onednn_forward(const Convolution& conv);
void conv2d_onednn_backward_data(const Convolution& conv);
void conv2d_onednn_backward_weight(const Convolution& conv, const WeightGradients& out);

// f32 operands as three bf16 products (precision 1: high) or one (2: medium).
bool conv2d_reduced_gains(const Convolution& sizes, std::int32_t precision);
// What each computes goes to where conv.y, conv.x or `out` point. The weight gradient knows only "medium".
void conv2d_reduced_forward(Convolution conv, const tutti_conv2d& call);
void conv2d_reduced_backward_data(Convolution conv, const tutti_conv2d& call);
void conv2d_reduced_backward_weight(Convolution conv, const tutti_conv2d& call, const WeightGradients& out);

// f64: columns of the input times the weight.
void conv2d_im2col_forward(const Convolution& conv);
void conv2d_im2col_backward_data(const Convolution& conv);
void conv2d_im2col_backward_weight(const Convolution& conv, const WeightGradients& out);

// ---- operands -----------------------------------------------------------------------------------------------------

// The view, or a copy in N, H, W, C order, of another dtype if asked.
tutti_view channels_last_input(const tutti_view& view, std::int32_t dtype, onednn::Purpose purpose);
// Where a result in N, H, W, C order goes: the view itself, or workspace, which store_result copies out.
tutti_view channels_last_result(const tutti_view& view, std::int32_t dtype, onednn::Purpose purpose);
void store_result(const tutti_view& view, const tutti_view& result);
// A contiguous copy in workspace.
tutti_view contiguous_copy(const tutti_view& view, std::int32_t dtype, onednn::Purpose purpose);
void copy_or_throw(const tutti_view& out, const tutti_view& in);

}  // namespace tutti::cpu
