// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 in arrays: branch-free conversions that loops vectorise, by F16C where the instruction set has
// it. core/half.hpp has the same conversions for single values; its functions must not be used in isa/*.cpp,
// where a copy that is not inlined could be picked by the linker for everybody.
#pragma once

#include <cstdint>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace tutti::cpu::TUTTI_ISA {
namespace {

struct Float16Bits {
  std::uint16_t bits;
};
struct BFloat16Bits {
  std::uint16_t bits;
};

[[gnu::always_inline]] inline std::uint32_t bits_of_float(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
[[gnu::always_inline]] inline float float_of_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

[[gnu::always_inline]] inline float bfloat16_to_float(std::uint16_t x) {
  return float_of_bits(static_cast<std::uint32_t>(x) << 16U);
}

[[gnu::always_inline]] inline std::uint16_t float_to_bfloat16(float x) {
  const std::uint32_t bits = bits_of_float(x);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  const std::uint32_t quiet_nan = (bits >> 16U) | 0x40U;
  return static_cast<std::uint16_t>(x != x ? quiet_nan : rounded);
}

// core/half.hpp's. Which way the double lies goes through a number, so that no mask changes its width.
[[gnu::always_inline]] inline float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double given = nearest;
  const auto side = static_cast<float>(x > given ? 1.0 : (x < given ? -1.0 : 0.0));  // 0 for NaN
  const std::uint32_t bits = bits_of_float(nearest);
  const std::uint32_t sign = (bits_of_float(side) ^ bits) >> 31U;  // 1: the double is nearer to 0
  const std::uint32_t step = side != 0.0F ? 1U - 2U * sign : 0U;
  return float_of_bits((bits & 1U) == 0U ? bits + step : bits);
}

// What an integer is on its way to bfloat16: itself or, where it may be no float, a float between the same two multiples of a power
// of two, which have all borders between two bfloat16 among them. Cheaper than round_to_odd, and all integers are normal floats.
[[gnu::always_inline]] inline float float_before_bfloat16(std::int32_t x) {
  const auto bits = static_cast<std::uint32_t>(x);
  const std::uint32_t middle = (bits & 0xffU) != 0U ? 0x80U : 0U;
  const auto between = static_cast<std::int32_t>((bits & ~0xffU) | middle);
  const bool is_float = bits + (1U << 24U) <= 1U << 25U;
  return static_cast<float>(is_float ? x : between);
}
[[gnu::always_inline]] inline float float_before_bfloat16(std::int64_t x) {
  const auto bits = static_cast<std::uint64_t>(x);
  const std::uint64_t middle = (bits & 0xfffU) != 0U ? 0x800U : 0U;
  const auto between = static_cast<std::int64_t>((bits & ~std::uint64_t{0xfff}) | middle);
  const bool is_double = bits + (std::uint64_t{1} << 53U) <= std::uint64_t{1} << 54U;
  // The same of the double: its last 30 bits become one.
  const auto wide = __builtin_bit_cast(std::uint64_t, static_cast<double>(is_double ? x : between));
  const std::uint64_t last = (wide & 0x3fffffffU) != 0U ? 0x20000000U : 0U;
  return static_cast<float>(__builtin_bit_cast(double, (wide & ~std::uint64_t{0x3fffffff}) | last));
}

[[gnu::always_inline]] inline float half_to_float(std::uint16_t x) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(x & 0x7fffU) << 13U;
  const std::uint32_t scaled = bits_of_float(float_of_bits(magnitude) * 0x1p112F);  // exact, subnormals too
  const std::uint32_t special = magnitude | 0x7f800000U;
  const std::uint32_t result = magnitude >= 0x0f800000U ? special : scaled;
  return float_of_bits(result | (static_cast<std::uint32_t>(x & 0x8000U) << 16U));
}

[[gnu::always_inline]] inline std::uint16_t float_to_half(float x) {
  const std::uint32_t bits = bits_of_float(x);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t normal = (magnitude + 0xfffU + ((magnitude >> 13U) & 1U) - 0x38000000U) >> 13U;
  // The adder rounds to the spacing of binary16's subnormals: that of floats in [0.5, 1) is 2^-24.
  const std::uint32_t subnormal = bits_of_float(float_of_bits(magnitude) + 0.5F) - 0x3f000000U;
  const std::uint32_t nan = 0x7e00U | ((magnitude >> 13U) & 0x3ffU);
  std::uint32_t result = magnitude < 0x38800000U ? subnormal : normal;
  result = magnitude >= 0x477ff000U ? 0x7c00U : result;
  result = magnitude > 0x7f800000U ? nan : result;
  return static_cast<std::uint16_t>(result | ((bits >> 16U) & 0x8000U));
}

inline void halves_to_floats(float* out, const Float16Bits* in, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
  }
#endif
  for (; i < count; ++i) out[i] = half_to_float(in[i].bits);
}

inline void floats_to_halves(Float16Bits* out, const float* in, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
  }
#endif
  for (; i < count; ++i) out[i] = Float16Bits{float_to_half(in[i])};
}

}  // namespace
}  // namespace tutti::cpu::TUTTI_ISA
