// SPDX-License-Identifier: Apache-2.0
// Arithmetic of sizes.
#pragma once

#include <cstdint>

namespace tutti {

// a / b, rounded up; a >= 0, b > 0.
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }

// The next multiple of `step`.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) noexcept {
  return divide_up(value, step) * step;
}

// Places that a window of `kernel` elements, `dilation` apart, takes along a dim of `size` elements with `padding` more on each side.
constexpr std::int64_t window_count(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                    std::int64_t padding, std::int64_t dilation) noexcept {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

}  // namespace tutti
