// SPDX-License-Identifier: Apache-2.0
/// \file
/// Convolutions and pools over images [N, C, H, W]. Results of convolutions are channels-last in memory.
#pragma once

#include <cstdint>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

/// Height and width; one number means both.
struct Size2d {
  std::int32_t height = 0;
  std::int32_t width = 0;
  constexpr Size2d() noexcept = default;
  constexpr Size2d(int both) noexcept : height(both), width(both) {}  // NOLINT: implicit, {.kernel_size = 3}
  constexpr Size2d(int h, int w) noexcept : height(h), width(w) {}
  friend constexpr bool operator==(Size2d, Size2d) noexcept = default;
};

/// Options of conv2d.
struct Conv2dFunctionOptions {
  Size2d stride = 1;
  Size2d padding = 0;
  Size2d dilation = 1;
  int groups = 1;
};

/// Cross-correlation of x [N, C, H, W] (or [C, H, W]: a batch of one) with weight [O, C / groups, kh, kw] plus bias [O] (undefined:
/// none): [N, O, (H + 2 padding - dilation (kh - 1) - 1) / stride + 1, ...]. All of one floating dtype (DTypeError) on one device
/// (DeviceError). ShapeError names what does not fit.
TUTTI_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const Conv2dFunctionOptions& options = {});

/// Options of max_pool2d. kernel_size is required; stride 0 means kernel_size.
struct MaxPool2dOptions {
  Size2d kernel_size = {};
  Size2d stride = {};
  Size2d padding = 0;
  Size2d dilation = 1;
  bool ceil_mode = false;  ///< Rounds the number of windows up: a last one may reach beyond the padding.
};
/// Greatest value of each window of x [N, C, H, W] or [C, H, W], floating (DTypeError otherwise): [N, C, H', W'] of its dtype, where
/// H' = (H + 2 padding - dilation (kernel - 1) - 1) / stride + 1, or that rounded up as long as each window begins inside the image
/// or the padding before it. NaN wins; padding counts as minus infinity. The gradient goes to the first of equal elements.
/// ShapeError for another number of dims or a window that doesn't fit, ValueError for options that make no sense.
TUTTI_API Tensor max_pool2d(const Tensor& x, const MaxPool2dOptions& options);
/// The same of a temporary, as in max_pool2d(relu(conv(x))): if x is the result of relu that nobody else sees, its memory is free
/// from here on and backward computes both gradients in one pass.
TUTTI_API Tensor max_pool2d(Tensor&& x, const MaxPool2dOptions& options);

/// Options of avg_pool2d. kernel_size is required; stride 0 means kernel_size.
struct AvgPool2dOptions {
  Size2d kernel_size = {};
  Size2d stride = {};
  Size2d padding = 0;
  bool count_include_pad = true;
  int divisor_override = 0;  ///< 0: the window's size.
  bool ceil_mode = false;    ///< As in MaxPool2dOptions. What lies beyond the padding never counts.
};
/// Mean of each window of x [N, C, H, W] or [C, H, W]; result and errors as of max_pool2d. The sum is divided by the window's
/// elements: with those in the padding or without, or divisor_override.
TUTTI_API Tensor avg_pool2d(const Tensor& x, const AvgPool2dOptions& options);

}  // namespace tutti
