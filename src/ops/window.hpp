// SPDX-License-Identifier: Apache-2.0
// Windows over the height and width of an image, as convolutions and pools move them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/integers.hpp"
#include "tensor/storage.hpp"
#include "tutti/core/error.hpp"
#include "tutti/ops/convolution.hpp"

namespace tutti::ops {

// Of one dim of the image; 64 bits, since a sum of options that each fit an int may not.
struct Window {
  std::int64_t size, kernel, stride, padding, dilation;
  bool ceil_mode;  // a last window may reach beyond the padding after the image, if it begins before that

  std::int64_t padded() const noexcept { return size + 2 * padding; }
  // padded() is known to fit 32 bits. A kernel of that size or less: the product fits 64.
  bool fits() const noexcept {
    if (kernel > padded() + (ceil_mode ? stride : 0)) return false;
    return dilation * (kernel - 1) < padded() ||
           (ceil_mode && size > 0 && dilation * (kernel - 1) - padded() + 1 < stride);
  }
  std::int64_t count() const noexcept {
    const std::int64_t room = padded() - dilation * (kernel - 1) - 1;  // for the last window to move in
    const std::int64_t whole = room < 0 ? 0 : room / stride + 1;
    return ceil_mode && whole * stride != room + stride && whole * stride < size + padding ? whole + 1
                                                                                           : whole;
  }
  // Options that mean the same and that kernels can compute with, in 32 bits, without an overflow.
  int effective_dilation() const noexcept { return kernel > 1 ? static_cast<int>(dilation) : 1; }
  int effective_stride() const noexcept { return static_cast<int>(std::min(stride, padded())); }
};

struct Windows {
  Window height, width;

  Windows(const Dims& x, std::int64_t kernel_height, std::int64_t kernel_width, Size2d stride, Size2d padding,
          Size2d dilation, bool ceil_mode = false) noexcept
      : height{x[2], kernel_height, stride.height, padding.height, dilation.height, ceil_mode},
        width{x[3], kernel_width, stride.width, padding.width, dilation.width, ceil_mode} {}
  Size2d dilation() const noexcept { return {height.effective_dilation(), width.effective_dilation()}; }
  Size2d stride() const noexcept { return {height.effective_stride(), width.effective_stride()}; }

  // ShapeError naming `op` if there is no window, or if images or results are larger than kernels can count. The `parts` of
  // the message say what the windows are.
  template <class... Parts>
  void check(const char* op, const Dims& x, std::int64_t channels, DType dtype, const Parts&... parts) const {
    constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
    TUTTI_CHECK(height.padded() <= kLargest && width.padded() <= kLargest, ShapeError, op, ": padding ",
                height.padding, " x ", width.padding, " makes the image of x ", x, " larger than ", kLargest,
                " on a side");
    TUTTI_CHECK(height.fits() && width.fits(), ShapeError, op, ": ", parts...,
                " is larger than the padded image of x ", x, " (padding ", height.padding, " x ",
                width.padding, ", dilation ", height.dilation, " x ", width.dilation, ")");
    tutti::detail::checked_bytes(
        tutti::detail::checked_numel({x[0], channels, height.count(), width.count()}, op), dtype, op);
  }
};

}  // namespace tutti::ops
