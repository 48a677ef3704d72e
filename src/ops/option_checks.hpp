// SPDX-License-Identifier: Apache-2.0
// Checks of options that a function has and a module too: both refuse the same ones, a module when it is made.
#pragma once

#include <cmath>

#include "tutti/core/error.hpp"
#include "tutti/ops/convolution.hpp"

namespace tutti::ops {

inline void check_convolution(const char* name, Size2d stride, Size2d padding, Size2d dilation) {
  TUTTI_CHECK(stride.height > 0 && stride.width > 0 && dilation.height > 0 && dilation.width > 0 &&
                  padding.height >= 0 && padding.width >= 0,
              ValueError, name, ": stride and dilation must be positive and padding not negative");
}

// Of a pool; stride 0 stands for the kernel's size.
inline void check_window(const char* name, Size2d kernel, Size2d stride, Size2d padding, Size2d dilation) {
  TUTTI_CHECK(kernel.height > 0 && kernel.width > 0, ShapeError, name,
              ": kernel_size is required and must be positive, given ", kernel.height, " x ", kernel.width);
  TUTTI_CHECK((stride == Size2d() || (stride.height > 0 && stride.width > 0)) && dilation.height > 0 &&
                  dilation.width > 0,
              ValueError, name, ": stride and dilation must be positive");
  TUTTI_CHECK(padding.height >= 0 && padding.width >= 0 && padding.height <= kernel.height / 2 &&
                  padding.width <= kernel.width / 2,
              ValueError, name, ": padding must be at most half of kernel_size, given ", padding.height,
              " x ", padding.width, " with a kernel of ", kernel.height, " x ", kernel.width);
}

inline void check_divisor(const char* name, int divisor_override) {
  TUTTI_CHECK(divisor_override >= 0, ValueError, name, ": divisor_override must be positive, given ",
              divisor_override);
}

inline void check_normalization(const char* name, double momentum, double eps) {
  TUTTI_CHECK(eps >= 0 && std::isfinite(eps), ValueError, name, ": eps must be finite and at least 0, given ",
              eps);
  TUTTI_CHECK(momentum >= 0 && momentum <= 1, ValueError, name, ": momentum must lie in [0, 1], given ",
              momentum);
}

inline void check_probability(const char* name, double p) {
  TUTTI_CHECK(p >= 0 && p <= 1, ValueError, name, ": p must lie in [0, 1], given ", p);
}

}  // namespace tutti::ops
