// SPDX-License-Identifier: Apache-2.0
// Vectors for the loops that reduce: one vector type an accumulator (float, double) as wide as the
// instruction set's registers, with loads and stores that convert f16 and bf16 on the way. Included only by
// files that are compiled once for each instruction set: everything has internal linkage and nothing of std
// is used.
#pragma once

#include <stdint.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "tutti/core/half.hpp"

#define TUTTI_INLINE [[gnu::always_inline]] inline

namespace tutti::cpu::TUTTI_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T, int kCount>
struct VectorType {
  typedef T Type __attribute__((vector_size(kCount * static_cast<int>(sizeof(T)))));
};
template <class T, int kCount>
using VectorOf = typename VectorType<T, kCount>::Type;

constexpr int kFloats = kVectorBytes / 4;
constexpr int kDoubles = kVectorBytes / 8;
using Floats = VectorOf<float, kFloats>;
using Doubles = VectorOf<double, kDoubles>;
using Bits32 = VectorOf<uint32_t, kFloats>;
using Bits64 = VectorOf<uint64_t, kDoubles>;
using Bits16 = VectorOf<uint16_t, kFloats>;

template <class To, class From>
TUTTI_INLINE To cast_bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  __builtin_memcpy(&result, &value, sizeof result);
  return result;
}

// ---- conversions of a vector of half floats -----------------------------------------------------------------------
TUTTI_INLINE Floats from_bfloat16(Bits16 raw) {
  return cast_bits<Floats>(__builtin_convertvector(raw, Bits32) << 16U);
}

TUTTI_INLINE Bits16 to_bfloat16(Floats value) {
  const Bits32 bits = cast_bits<Bits32>(value);
  const Bits32 rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  const Bits32 quiet = (bits >> 16U) | 0x40U;
  return __builtin_convertvector((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded, Bits16);
}

// The forms with a mask of all ones, since GCC 12 warns of the undefined operand inside the plain ones.
TUTTI_INLINE Floats from_half(Bits16 raw) {
#if defined(__AVX512F__)
  return cast_bits<Floats>(_mm512_maskz_cvtph_ps(0xffff, cast_bits<__m256i>(raw)));
#elif defined(__F16C__) && defined(__AVX2__)
  return cast_bits<Floats>(_mm256_cvtph_ps(cast_bits<__m128i>(raw)));
#else
  // The exponent's bias is mended by a multiplication, which also normalises subnormals.
  const Bits32 bits = __builtin_convertvector(raw, Bits32);
  const Bits32 magnitude = (bits & 0x7fffU) << 13U;
  const Bits32 scaled = cast_bits<Bits32>(cast_bits<Floats>(magnitude) * 0x1p112F);
  const Bits32 special = magnitude | 0x7f800000U;
  return cast_bits<Floats>((magnitude >= 0x0f800000U ? special : scaled) | ((bits & 0x8000U) << 16U));
#endif
}

TUTTI_INLINE Bits16 to_half(Floats value) {
#if defined(__AVX512F__)
  return cast_bits<Bits16>(
      _mm512_maskz_cvtps_ph(0xffff, cast_bits<__m512>(value), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__) && defined(__AVX2__)
  return cast_bits<Bits16>(_mm256_cvtps_ph(cast_bits<__m256>(value), _MM_FROUND_TO_NEAREST_INT));
#else
  const Bits32 bits = cast_bits<Bits32>(value);
  const Bits32 magnitude = bits & 0x7fffffffU;
  const Bits32 normal = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13U) & 1U)) >> 13U;
  // Adding 0.5 shifts a subnormal's mantissa into place and rounds it.
  const Bits32 subnormal = cast_bits<Bits32>(cast_bits<Floats>(magnitude) + 0.5F) - 0x3f000000U;
  const Bits32 quiet = 0x7e00U | ((magnitude >> 13U) & 0x3ffU);
  const Bits32 infinity = (magnitude & 0U) | 0x7c00U;
  Bits32 result = magnitude < 0x38800000U ? subnormal : normal;
  result = magnitude >= 0x47800000U ? infinity : result;
  result = magnitude > 0x7f800000U ? quiet : result;
  return __builtin_convertvector(result | ((bits >> 16U) & 0x8000U), Bits16);
#endif
}

// ---- loads and stores: Lanes<T> reads and writes T and computes in Lanes<T>::Number -------------------------------
template <class T>
struct Lanes;

// Part of a vector, count < width; the remaining lanes get `fill`, or are not written.
template <class L>
TUTTI_INLINE typename L::Vector load_staged(const typename L::Element* data, int64_t count,
                                            typename L::Number fill) {
  typename L::Element buffer[L::kWidth];
  for (int i = 0; i < L::kWidth; ++i) buffer[i] = i < count ? data[i] : typename L::Element{};
  typename L::Vector value = L::load(buffer);
  for (int i = 0; i < L::kWidth; ++i) value[i] = i < count ? value[i] : fill;
  return value;
}
template <class L>
TUTTI_INLINE void store_staged(typename L::Element* data, typename L::Vector value, int64_t count) {
  typename L::Element buffer[L::kWidth];
  L::store(buffer, value);
  for (int64_t i = 0; i < count; ++i) data[i] = buffer[i];
}

template <>
struct Lanes<float> {
  using Element = float;
  using Number = float;
  using Vector = Floats;
  static constexpr int kWidth = kFloats;
  TUTTI_INLINE static Vector load(const float* data) {
    Vector value;
    __builtin_memcpy(&value, data, sizeof value);
    return value;
  }
  TUTTI_INLINE static void store(float* data, Vector value) { __builtin_memcpy(data, &value, sizeof value); }
  TUTTI_INLINE static Vector load(const float* data, int64_t count, float fill) {
#if defined(__AVX512F__)
    const __mmask16 mask = static_cast<__mmask16>((1U << count) - 1U);
    return cast_bits<Vector>(_mm512_mask_loadu_ps(_mm512_set1_ps(fill), mask, data));
#else
    return load_staged<Lanes>(data, count, fill);
#endif
  }
  TUTTI_INLINE static void store(float* data, Vector value, int64_t count) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(data, static_cast<__mmask16>((1U << count) - 1U), cast_bits<__m512>(value));
#else
    store_staged<Lanes>(data, value, count);
#endif
  }
};

template <>
struct Lanes<double> {
  using Element = double;
  using Number = double;
  using Vector = Doubles;
  static constexpr int kWidth = kDoubles;
  TUTTI_INLINE static Vector load(const double* data) {
    Vector value;
    __builtin_memcpy(&value, data, sizeof value);
    return value;
  }
  TUTTI_INLINE static void store(double* data, Vector value) { __builtin_memcpy(data, &value, sizeof value); }
  TUTTI_INLINE static Vector load(const double* data, int64_t count, double fill) {
    return load_staged<Lanes>(data, count, fill);
  }
  TUTTI_INLINE static void store(double* data, Vector value, int64_t count) {
    store_staged<Lanes>(data, value, count);
  }
};

// f16 and bf16: kFromBits and kToBits are the conversions above. Only the members `bits` of Half and BFloat16
// are used: their member functions are inline with external linkage.
template <class T, Floats (*kFromBits)(Bits16), Bits16 (*kToBits)(Floats)>
struct HalfLanes {
  using Element = T;
  using Number = float;
  using Vector = Floats;
  static constexpr int kWidth = kFloats;
  TUTTI_INLINE static Vector load(const T* data) {
    Bits16 raw;
    __builtin_memcpy(&raw, data, sizeof raw);
    return kFromBits(raw);
  }
  TUTTI_INLINE static void store(T* data, Vector value) {
    const Bits16 raw = kToBits(value);
    __builtin_memcpy(static_cast<void*>(data), &raw, sizeof raw);
  }
  TUTTI_INLINE static Vector load(const T* data, int64_t count, float fill) {
    uint16_t buffer[kWidth] = {};
    for (int64_t i = 0; i < count; ++i) buffer[i] = data[i].bits;
    Bits16 raw;
    __builtin_memcpy(&raw, buffer, sizeof raw);
    Vector value = kFromBits(raw);
    for (int i = 0; i < kWidth; ++i) value[i] = i < count ? value[i] : fill;
    return value;
  }
  TUTTI_INLINE static void store(T* data, Vector value, int64_t count) {
    const Bits16 raw = kToBits(value);
    for (int64_t i = 0; i < count; ++i) data[i].bits = raw[i];
  }
};
template <>
struct Lanes<Half> : HalfLanes<Half, from_half, to_half> {};
template <>
struct Lanes<BFloat16> : HalfLanes<BFloat16, from_bfloat16, to_bfloat16> {};

// A dtype that Lanes knows: f64, f32, f16, bf16.
template <class T>
concept Floating = requires {
  typename Lanes<T>::Number;
};

template <Floating T>
TUTTI_INLINE double to_double(const T& value) {
  if constexpr (sizeof(T) == 2) {
    Bits16 raw{};
    raw[0] = value.bits;
    return static_cast<double>(Lanes<T>::load(reinterpret_cast<const T*>(&raw))[0]);
  } else {
    return static_cast<double>(value);
  }
}

template <class V, class N>
TUTTI_INLINE V broadcast(N value) {
  return value - V{};  // exact for every value, so that it folds away
}

template <class V>
TUTTI_INLINE V greater_of(V a, V b) {  // b if either is NaN
  return a > b ? a : b;
}

// ---- across the lanes ----------------------------------------------------------------------------------------------
// Joins the lanes by halves: join(vector, vector) and join(number, number).
template <class N, int kCount, class Join>
TUTTI_INLINE N fold_lanes(VectorOf<N, kCount> value, const Join& join) {
  if constexpr (kCount == 2) {
    return join(static_cast<N>(value[0]), static_cast<N>(value[1]));
  } else {
    VectorOf<N, kCount / 2> halves[2];
    __builtin_memcpy(halves, &value, sizeof value);
    return fold_lanes<N, kCount / 2>(join(halves[0], halves[1]), join);
  }
}

struct AddLanes {
  template <class V>
  TUTTI_INLINE V operator()(V a, V b) const {
    return a + b;
  }
};
struct GreaterLane {
  template <class V>
  TUTTI_INLINE V operator()(V a, V b) const {
    return a > b ? a : b;
  }
};

TUTTI_INLINE double sum_lanes(Floats value) {
  return static_cast<double>(fold_lanes<float, kFloats>(value, AddLanes{}));
}
TUTTI_INLINE double sum_lanes(Doubles value) { return fold_lanes<double, kDoubles>(value, AddLanes{}); }
// Of lanes that are no NaN.
TUTTI_INLINE float greatest_lane(Floats value) { return fold_lanes<float, kFloats>(value, GreaterLane{}); }
TUTTI_INLINE double greatest_lane(Doubles value) {
  return fold_lanes<double, kDoubles>(value, GreaterLane{});
}

}  // namespace
}  // namespace tutti::cpu::TUTTI_ISA
