// SPDX-License-Identifier: Apache-2.0
/// \file
/// A number that stands beside tensors. Its kind (bool, integer, floating) takes part in type promotion as a Python
/// number does in PyTorch: 2 * int_tensor stays integer, 2.0 * int_tensor becomes float32.
#pragma once

#include <concepts>
#include <cstdint>

namespace tutti {

class Scalar {
 public:
  enum class Kind : std::uint8_t { kBool, kInteger, kFloating };

  template <std::integral T>
  constexpr Scalar(T value) noexcept  // NOLINT: implicit
      : kind_(std::same_as<T, bool> ? Kind::kBool : Kind::kInteger),
        integer_(static_cast<std::int64_t>(value)),
        floating_(static_cast<double>(value)) {}
  template <std::floating_point T>
  constexpr Scalar(T value) noexcept  // NOLINT: implicit
      : kind_(Kind::kFloating), integer_(to_integer(static_cast<double>(value))), floating_(static_cast<double>(value)) {}

  constexpr Kind kind() const noexcept { return kind_; }
  constexpr bool is_floating_point() const noexcept { return kind_ == Kind::kFloating; }
  constexpr double to_double() const noexcept { return floating_; }
  constexpr std::int64_t to_int64() const noexcept { return integer_; }
  /// To a C++ number: integers exactly, floating values truncated towards zero for integer types.
  template <class T>
  constexpr T to() const noexcept {
    if constexpr (std::integral<T>) {
      return static_cast<T>(integer_);
    } else {
      return static_cast<T>(floating_);
    }
  }

 private:
  static constexpr std::int64_t to_integer(double value) noexcept {
    return value > -9.2e18 && value < 9.2e18 ? static_cast<std::int64_t>(value) : 0;  // NaN and overflow: 0
  }
  Kind kind_;
  std::int64_t integer_;
  double floating_;
};

}  // namespace tutti
