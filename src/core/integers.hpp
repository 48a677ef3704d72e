// SPDX-License-Identifier: Apache-2.0
// Arithmetic of sizes.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace tutti {

// a / b, rounded up; a >= 0, b > 0.
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }

// The next multiple of `step`; value >= 0, step > 0.
template <std::integral T>
constexpr T round_up(T value, std::type_identity_t<T> step) noexcept {
  return (value + step - 1) / step * step;
}

// Places that a window of `kernel` elements, `dilation` apart, takes along a dim of `size` elements with `padding` more on each
// side.
constexpr std::int64_t window_count(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                    std::int64_t padding, std::int64_t dilation) noexcept {
  return (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

}  // namespace tutti
