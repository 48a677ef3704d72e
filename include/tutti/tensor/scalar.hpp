// SPDX-License-Identifier: Apache-2.0
/// \file
/// A number that stands beside tensors. Its kind (bool, integer, floating) takes part in type promotion as a
/// Python number does in PyTorch: 2 * int_tensor stays integer, 2.0 * int_tensor becomes float32.
#pragma once

#include <concepts>
#include <cstdint>

namespace tutti {

/// A number and its kind. Implicitly made of any C++ arithmetic type.
class Scalar {
 public:
  /// What a number counts as in type promotion.
  enum class Kind : std::uint8_t { kBool, kInteger, kFloating };

  /// A bool, or an integer as int64.
  template <std::integral T>
  constexpr Scalar(T value) noexcept  // NOLINT: implicit
      : kind_(std::same_as<T, bool> ? Kind::kBool : Kind::kInteger),
        integer_(static_cast<std::int64_t>(value)),
        floating_(static_cast<double>(value)) {}
  /// A floating-point number as double.
  template <std::floating_point T>
  constexpr Scalar(T value) noexcept  // NOLINT: implicit
      : kind_(Kind::kFloating),
        integer_(to_integer(static_cast<double>(value))),
        floating_(static_cast<double>(value)) {}

  constexpr Kind kind() const noexcept { return kind_; }  ///< What it was made of.
  constexpr bool is_floating_point() const noexcept {
    return kind_ == Kind::kFloating;
  }                                                                  ///< True for float and double.
  constexpr double to_double() const noexcept { return floating_; }  ///< Its value as double.
  /// Its value as int64: floating values truncated towards zero; NaN and values beyond int64 become 0.
  constexpr std::int64_t to_int64() const noexcept { return integer_; }
  /// To a C++ number: integers exactly (modulo the type's range), floating values truncated towards zero for
  /// integer types; to bool, whether it is not 0.
  template <class T>
  constexpr T to() const noexcept {
    if constexpr (std::same_as<T, bool>) {
      return floating_ != 0;
    } else if constexpr (std::integral<T>) {
      return static_cast<T>(integer_);
    } else {
      return static_cast<T>(floating_);
    }
  }

 private:
  static constexpr std::int64_t to_integer(double value) noexcept {
    return value >= -0x1p63 && value < 0x1p63 ? static_cast<std::int64_t>(value) : 0;
  }
  Kind kind_;
  std::int64_t integer_;
  double floating_;
};

}  // namespace tutti
