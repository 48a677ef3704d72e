// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/isa/convert.hpp"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <type_traits>

#include "kernels/cpu/isa/half_lanes.hpp"

namespace tutti::cpu::TUTTI_ISA {

extern const ConvertLoops kConvertLoops;

namespace {

// ---- one element --------------------------------------------------------------------------------------------------

// What an element is computed as: f16 and bf16 as float.
[[gnu::always_inline]] inline float widen(Float16Bits x) { return half_to_float(x.bits); }
[[gnu::always_inline]] inline float widen(BFloat16Bits x) { return bfloat16_to_float(x.bits); }
template <class T>
[[gnu::always_inline]] inline T widen(T x) {
  return x;
}

template <class T>
struct IntegerRange {
  static constexpr bool kSigned = std::is_signed_v<T>;
  static constexpr int kBits = static_cast<int>(sizeof(T)) * 8 - (kSigned ? 1 : 0);
  static constexpr T kMax = static_cast<T>(~std::uint64_t{0} >> (64 - kBits));
  static constexpr T kMin = kSigned ? static_cast<T>(-kMax - 1) : T(0);
  static constexpr double kAbove =
      kBits == 63 ? 0x1p63 : static_cast<double>(std::uint64_t{1} << (kBits & 63));
};

// The float from which a half is rounded. An integer that is no float is infinity to binary16, whichever float it becomes.
template <class D, class S>
[[gnu::always_inline]] inline float float_before_half(S x) {
  if constexpr (std::is_same_v<S, double>) {
    return round_to_odd(x);
  } else if constexpr (std::is_same_v<D, BFloat16Bits> && std::is_integral_v<S> && sizeof(S) >= 4) {
    return float_before_bfloat16(x);
  } else {
    return static_cast<float>(x);
  }
}

template <class D, class S>
[[gnu::always_inline]] inline D cast(S x) {
  if constexpr (std::is_same_v<D, Float16Bits>) {
    return Float16Bits{float_to_half(float_before_half<D>(x))};
  } else if constexpr (std::is_same_v<D, BFloat16Bits>) {
    return BFloat16Bits{float_to_bfloat16(float_before_half<D>(x))};
  } else if constexpr (std::is_same_v<D, bool>) {
    return x != S(0);
  } else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<D>) {
    using Range = IntegerRange<D>;
    const bool below = x <= static_cast<S>(Range::kMin);
    const bool above = x >= static_cast<S>(Range::kAbove);
    const bool inside = !below & !above & (x == x);
    const D truncated = static_cast<D>(inside ? x : S(0));
    return above ? Range::kMax : (below ? Range::kMin : truncated);
  } else {
    return static_cast<D>(x);
  }
}

template <class D, class S>
void convert(void* out, const void* in, std::int64_t count) {
  D* target = static_cast<D*>(out);
  const S* source = static_cast<const S*>(in);
  if constexpr (std::is_same_v<S, Float16Bits> && std::is_same_v<D, float>) {
    halves_to_floats(target, source, count);
  } else if constexpr (std::is_same_v<S, float> && std::is_same_v<D, Float16Bits>) {
    floats_to_halves(target, source, count);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) target[i] = cast<D>(widen(source[i]));
  }
}

// ---- strided ------------------------------------------------------------------------------------------------------

template <class T>
void gather(void* out, const void* in, std::int64_t stride, std::int64_t count) {
  T* target = static_cast<T*>(out);
  const char* source = static_cast<const char*>(in);
  if (stride == 0) {
    const T value = *static_cast<const T*>(in);
    for (std::int64_t i = 0; i < count; ++i) target[i] = value;
    return;
  }
  if (stride == 2 * static_cast<std::int64_t>(sizeof(T))) {
    const T* pairs = static_cast<const T*>(in);
    for (std::int64_t i = 0; i < count; ++i) target[i] = pairs[2 * i];
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) target[i] = *reinterpret_cast<const T*>(source + i * stride);
}

template <class T>
void scatter(void* out, std::int64_t stride, const void* in, std::int64_t count) {
  char* target = static_cast<char*>(out);
  const T* source = static_cast<const T*>(in);
  for (std::int64_t i = 0; i < count; ++i) *reinterpret_cast<T*>(target + i * stride) = source[i];
}

template <class T>
void fill(void* out, const void* value, std::int64_t count) {
  T* target = static_cast<T*>(out);
  const T kept = *static_cast<const T*>(value);
  for (std::int64_t i = 0; i < count; ++i) target[i] = kept;
}

// A tile is one cache line wide each way: every line is read and written once, whatever the strides do to the
// cache sets.
template <class T>
void transpose_tile(char* out, std::int64_t out_stride, const char* in, std::int64_t in_stride) {
  constexpr int kTile = 64 / static_cast<int>(sizeof(T));
  alignas(64) T tile[kTile][kTile];
  for (int c = 0; c < kTile; ++c) {
    const T* source = reinterpret_cast<const T*>(in + c * in_stride);
    for (int r = 0; r < kTile; ++r) tile[c][r] = source[r];
  }
  for (int r = 0; r < kTile; ++r) {
    alignas(64) T line[kTile];
    for (int c = 0; c < kTile; ++c) line[c] = tile[c][r];
    T* target = reinterpret_cast<T*>(out + r * out_stride);
    for (int c = 0; c < kTile; ++c) target[c] = line[c];
  }
}

#if defined(__AVX512F__)
// For pairs of lines kHalf apart, swaps the upper half of the first with the lower half of the second, in every block of
// 2 * kHalf lanes.
template <int kHalf>
[[gnu::always_inline]] inline void swap_halves(__m512i (&lines)[16]) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __mmask16 upper = _mm512_test_epi32_mask(lane, _mm512_set1_epi32(kHalf));
  const __m512i of_second = _mm512_add_epi32(lane, _mm512_set1_epi32(16));
  const __m512i half = _mm512_set1_epi32(kHalf);
  const __m512i for_first = _mm512_mask_sub_epi32(lane, upper, of_second, half);
  const __m512i for_second = _mm512_mask_mov_epi32(_mm512_add_epi32(lane, half), upper, of_second);
  for (int i = 0; i < 16; ++i) {
    if ((i & kHalf) != 0) continue;
    const __m512i first = lines[i];
    lines[i] = _mm512_permutex2var_epi32(first, for_first, lines[i + kHalf]);
    lines[i + kHalf] = _mm512_permutex2var_epi32(first, for_second, lines[i + kHalf]);
  }
}

template <>
void transpose_tile<std::uint32_t>(char* out, std::int64_t out_stride, const char* in,
                                   std::int64_t in_stride) {
  __m512i lines[16];
  for (int c = 0; c < 16; ++c) lines[c] = _mm512_loadu_si512(in + c * in_stride);
  swap_halves<8>(lines);
  swap_halves<4>(lines);
  swap_halves<2>(lines);
  swap_halves<1>(lines);
  for (int r = 0; r < 16; ++r) _mm512_storeu_si512(out + r * out_stride, lines[r]);
}
#endif

template <class T>
void transpose(void* out, std::int64_t out_stride, const void* in, std::int64_t in_stride, std::int64_t rows,
               std::int64_t columns) {
  constexpr std::int64_t kTile = 64 / static_cast<int>(sizeof(T));
  constexpr std::int64_t kSize = static_cast<std::int64_t>(sizeof(T));
  char* target = static_cast<char*>(out);
  const char* source = static_cast<const char*>(in);
  for (std::int64_t r = 0; r < rows; r += kTile) {
    const std::int64_t height = rows - r < kTile ? rows - r : kTile;
    for (std::int64_t c = 0; c < columns; c += kTile) {
      const std::int64_t width = columns - c < kTile ? columns - c : kTile;
      char* to = target + r * out_stride + c * kSize;
      const char* from = source + r * kSize + c * in_stride;
      if (height == kTile && width == kTile) {
        transpose_tile<T>(to, out_stride, from, in_stride);
        continue;
      }
      for (std::int64_t i = 0; i < height; ++i) {
        T* line = reinterpret_cast<T*>(to + i * out_stride);
        const char* column = from + i * kSize;
        for (std::int64_t j = 0; j < width; ++j)
          line[j] = *reinterpret_cast<const T*>(column + j * in_stride);
      }
    }
  }
}

template <class D, class S>
constexpr ConvertLoops::Convert convert_or_null() {
  if constexpr (std::is_same_v<D, S>) {
    return nullptr;
  } else {
    return &convert<D, S>;
  }
}

template <class D>
constexpr void fill_row(ConvertLoops::Convert (&row)[kDTypes]) {
  const ConvertLoops::Convert loops[kDTypes] = {
      convert_or_null<D, double>(),       convert_or_null<D, float>(),
      convert_or_null<D, Float16Bits>(),  convert_or_null<D, BFloat16Bits>(),
      convert_or_null<D, std::int64_t>(), convert_or_null<D, std::int32_t>(),
      convert_or_null<D, std::int16_t>(), convert_or_null<D, std::int8_t>(),
      convert_or_null<D, std::uint8_t>(), convert_or_null<D, bool>()};
  for (int i = 0; i < kDTypes; ++i) row[i] = loops[i];
}

constexpr ConvertLoops make_loops() {
  using std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;
  ConvertLoops loops{};
  fill_row<double>(loops.convert[0]);
  fill_row<float>(loops.convert[1]);
  fill_row<Float16Bits>(loops.convert[2]);
  fill_row<BFloat16Bits>(loops.convert[3]);
  fill_row<std::int64_t>(loops.convert[4]);
  fill_row<std::int32_t>(loops.convert[5]);
  fill_row<std::int16_t>(loops.convert[6]);
  fill_row<std::int8_t>(loops.convert[7]);
  fill_row<uint8_t>(loops.convert[8]);
  fill_row<bool>(loops.convert[9]);
  ConvertLoops::Gather gathers[] = {&gather<uint8_t>, &gather<uint16_t>, &gather<uint32_t>,
                                    &gather<uint64_t>};
  ConvertLoops::Scatter scatters[] = {&scatter<uint8_t>, &scatter<uint16_t>, &scatter<uint32_t>,
                                      &scatter<uint64_t>};
  ConvertLoops::Fill fills[] = {&fill<uint8_t>, &fill<uint16_t>, &fill<uint32_t>, &fill<uint64_t>};
  ConvertLoops::Transpose transposes[] = {&transpose<uint8_t>, &transpose<uint16_t>, &transpose<uint32_t>,
                                          &transpose<uint64_t>};
  for (int i = 0; i < 4; ++i) {
    loops.gather[i] = gathers[i];
    loops.scatter[i] = scatters[i];
    loops.fill[i] = fills[i];
    loops.transpose[i] = transposes[i];
  }
  return loops;
}

}  // namespace

constexpr ConvertLoops kConvertLoops = make_loops();

}  // namespace tutti::cpu::TUTTI_ISA
