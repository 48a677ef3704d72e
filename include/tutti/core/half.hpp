// SPDX-License-Identifier: Apache-2.0
/// \file
/// IEEE binary16 and bfloat16 storage types. Conversions from float, double and integers round once, to nearest
/// even, and keep subnormals, infinities and NaN. Header only and free of library calls, so that device code can
/// include it.
#pragma once

#include <concepts>
#include <cstdint>

#if defined(__CUDACC__)
#define TUTTI_HOST_DEVICE __host__ __device__
#else
#define TUTTI_HOST_DEVICE
#endif

namespace tutti {

namespace detail {
TUTTI_HOST_DEVICE constexpr std::uint32_t float_bits(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
TUTTI_HOST_DEVICE constexpr float bits_float(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

// What a double is on its way to a narrower format: if it is no float, the one of the two floats beside it whose last bit is 1.
// It lies on no border between two halves and on the double's side of each, so that rounding it gives the double's half.
// [Boldo and Melquiond 2008]
TUTTI_HOST_DEVICE constexpr float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const std::uint32_t bits = float_bits(nearest);
  const double given = nearest;
  if (given == value || value != value || (bits & 1U) != 0U) return nearest;
  const bool is_short_of_it = (given < value) == (value > 0);  // nearer to 0 than the double is
  return bits_float(is_short_of_it ? bits + 1U : bits - 1U);
}

// What an integer is on its way to bfloat16: itself or, where it may be no double, the middle of the two multiples of 2^12 around it.
// Those have all borders between two bfloat16 among them.
template <std::integral Integer>
TUTTI_HOST_DEVICE constexpr double integer_to_double(Integer value) {
  if constexpr (sizeof(Integer) == 8) {
    const Integer above = value >> 53U;
    if (above != 0 && above != static_cast<Integer>(-1)) {
      const auto bits = static_cast<std::uint64_t>(value);
      const std::uint64_t middle = (bits & 0xfffU) != 0U ? 0x800U : 0U;
      value = static_cast<Integer>((bits & ~std::uint64_t{0xfff}) | middle);
    }
  }
  return static_cast<double>(value);
}

TUTTI_HOST_DEVICE constexpr std::uint16_t float_to_bfloat16(float value) {
  const std::uint32_t bits = float_bits(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U)
    return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);  // quiet NaN
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

TUTTI_HOST_DEVICE constexpr std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U)
    return static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13U) & 0x3ffU));
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // rounds to infinity
  if (magnitude >= 0x38800000U) {                                                   // normal in binary16
    const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13U) & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13U));
  }
  if (magnitude < 0x33000000U) return static_cast<std::uint16_t>(sign);  // below half of the least subnormal
  const std::uint32_t shift = 126U - (magnitude >> 23U);
  const std::uint32_t mantissa = (magnitude & 0x7fffffU) | 0x800000U;
  const std::uint32_t kept = mantissa >> shift;
  const std::uint32_t rest = mantissa & ((1U << shift) - 1U);
  const std::uint32_t halfway = 1U << (shift - 1U);
  const std::uint32_t up = (rest > halfway || (rest == halfway && (kept & 1U))) ? 1U : 0U;
  return static_cast<std::uint16_t>(sign | (kept + up));
}

TUTTI_HOST_DEVICE constexpr float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> 10U) & 0x1fU;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 31U) return bits_float(sign | 0x7f800000U | (mantissa << 13U));
  if (exponent != 0U) return bits_float(sign | ((exponent + 112U) << 23U) | (mantissa << 13U));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;  // zero and subnormals, exact
  return sign != 0U ? -magnitude : magnitude;
}
}  // namespace detail

/// IEEE binary16. Arithmetic happens in float: convert, compute, convert back.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  // Of an integer too: one that is no float lies beyond the greatest Half.
  TUTTI_HOST_DEVICE constexpr explicit Half(float value) : bits(detail::float_to_half(value)) {}
  template <std::same_as<double> Double>  // a template, so that an integer is no ambiguity
  TUTTI_HOST_DEVICE constexpr explicit Half(Double value) : Half(detail::round_to_odd(value)) {}
  TUTTI_HOST_DEVICE constexpr operator float() const {
    return detail::half_to_float(bits);
  }  // NOLINT: implicit, exact
  TUTTI_HOST_DEVICE static constexpr Half from_bits(std::uint16_t raw) {
    Half half;
    half.bits = raw;
    return half;
  }
};

/// bfloat16: the upper half of a float.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  TUTTI_HOST_DEVICE constexpr explicit BFloat16(float value) : bits(detail::float_to_bfloat16(value)) {}
  template <std::same_as<double> Double>
  TUTTI_HOST_DEVICE constexpr explicit BFloat16(Double value) : BFloat16(detail::round_to_odd(value)) {}
  template <std::integral Integer>
  TUTTI_HOST_DEVICE constexpr explicit BFloat16(Integer value) : BFloat16(detail::integer_to_double(value)) {}
  TUTTI_HOST_DEVICE constexpr operator float() const {  // NOLINT: implicit, exact
    return detail::bits_float(static_cast<std::uint32_t>(bits) << 16U);
  }
  TUTTI_HOST_DEVICE static constexpr BFloat16 from_bits(std::uint16_t raw) {
    BFloat16 value;
    value.bits = raw;
    return value;
  }
};

}  // namespace tutti
