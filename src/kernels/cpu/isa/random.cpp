// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/isa/random.hpp"

#include "kernels/functors/math.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tutti::cpu::TUTTI_ISA {

extern const RandomLoops kRandomLoops;

namespace {

namespace math = functors::math;

// ---- Philox -------------------------------------------------------------------------------------------------------
// One counter a 64-bit lane, each of its four words in the lower half of a lane of its own register. The
// upper halves hold rubbish: the multiplication reads only the lower ones, so nothing has to be masked.

#if defined(__AVX512F__)
using Lanes = __m512i;
constexpr int kLanes = 8;
inline Lanes all(std::uint64_t x) { return _mm512_set1_epi64(static_cast<long long>(x)); }
inline Lanes counters_from(std::uint64_t first) {
  return _mm512_add_epi64(all(first), _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Lanes multiply(Lanes a, Lanes b) { return _mm512_mul_epu32(a, b); }
inline Lanes upper(Lanes a) { return _mm512_srli_epi64(a, 32); }
inline Lanes exclusive_or(Lanes a, Lanes b, Lanes c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }
inline Lanes join(Lanes low, Lanes high) {
  return _mm512_mask_blend_epi32(0xaaaa, low, _mm512_slli_epi64(high, 32));
}
inline void store_pairs(std::uint32_t* out, Lanes first, Lanes second) {
  const Lanes front = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const Lanes back = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  _mm512_storeu_si512(out, _mm512_permutex2var_epi64(first, front, second));
  _mm512_storeu_si512(out + 16, _mm512_permutex2var_epi64(first, back, second));
}
#elif defined(__AVX2__)
using Lanes = __m256i;
constexpr int kLanes = 4;
inline Lanes all(std::uint64_t x) { return _mm256_set1_epi64x(static_cast<long long>(x)); }
inline Lanes counters_from(std::uint64_t first) {
  return _mm256_add_epi64(all(first), _mm256_setr_epi64x(0, 1, 2, 3));
}
inline Lanes multiply(Lanes a, Lanes b) { return _mm256_mul_epu32(a, b); }
inline Lanes upper(Lanes a) { return _mm256_srli_epi64(a, 32); }
inline Lanes exclusive_or(Lanes a, Lanes b, Lanes c) { return _mm256_xor_si256(_mm256_xor_si256(a, b), c); }
inline Lanes join(Lanes low, Lanes high) {
  return _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0xaa);
}
inline void store_pairs(std::uint32_t* out, Lanes first, Lanes second) {
  const Lanes even = _mm256_unpacklo_epi64(first, second);
  const Lanes odd = _mm256_unpackhi_epi64(first, second);
  _mm256_storeu_si256(reinterpret_cast<Lanes*>(out), _mm256_permute2x128_si256(even, odd, 0x20));
  _mm256_storeu_si256(reinterpret_cast<Lanes*>(out + 8), _mm256_permute2x128_si256(even, odd, 0x31));
}
#elif defined(__SSE4_1__)
using Lanes = __m128i;
constexpr int kLanes = 2;
inline Lanes all(std::uint64_t x) { return _mm_set1_epi64x(static_cast<long long>(x)); }
inline Lanes counters_from(std::uint64_t first) { return _mm_add_epi64(all(first), _mm_set_epi64x(1, 0)); }
inline Lanes multiply(Lanes a, Lanes b) { return _mm_mul_epu32(a, b); }
inline Lanes upper(Lanes a) { return _mm_srli_epi64(a, 32); }
inline Lanes exclusive_or(Lanes a, Lanes b, Lanes c) { return _mm_xor_si128(_mm_xor_si128(a, b), c); }
inline Lanes join(Lanes low, Lanes high) { return _mm_blend_epi16(low, _mm_slli_epi64(high, 32), 0xcc); }
inline void store_pairs(std::uint32_t* out, Lanes first, Lanes second) {
  _mm_storeu_si128(reinterpret_cast<Lanes*>(out), _mm_unpacklo_epi64(first, second));
  _mm_storeu_si128(reinterpret_cast<Lanes*>(out + 4), _mm_unpackhi_epi64(first, second));
}
#else
using Lanes = std::uint64_t;
constexpr int kLanes = 1;
inline Lanes all(std::uint64_t x) { return x; }
inline Lanes counters_from(std::uint64_t first) { return first; }
inline Lanes multiply(Lanes a, Lanes b) { return (a & 0xffffffffU) * (b & 0xffffffffU); }
inline Lanes upper(Lanes a) { return a >> 32U; }
inline Lanes exclusive_or(Lanes a, Lanes b, Lanes c) { return a ^ b ^ c; }
inline Lanes join(Lanes low, Lanes high) { return (low & 0xffffffffU) | (high << 32U); }
inline void store_pairs(std::uint32_t* out, Lanes first, Lanes second) {
  out[0] = static_cast<std::uint32_t>(first);
  out[1] = static_cast<std::uint32_t>(first >> 32U);
  out[2] = static_cast<std::uint32_t>(second);
  out[3] = static_cast<std::uint32_t>(second >> 32U);
}
#endif

void philox_bits(std::uint32_t* out, PhiloxCounters at, std::int64_t counters) {
  constexpr int kRounds = 10;
  Lanes keys[kRounds][2];
  std::uint32_t key[2] = {static_cast<std::uint32_t>(at.seed), static_cast<std::uint32_t>(at.seed >> 32U)};
  for (auto& round : keys) {
    round[0] = all(key[0]);
    round[1] = all(key[1]);
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  const Lanes first_multiplier = all(0xD2511F53U);
  const Lanes second_multiplier = all(0xCD9E8D57U);
  for (std::int64_t i = 0; i < counters; i += kLanes) {
    Lanes c0 = counters_from(at.first + static_cast<std::uint64_t>(i));
    Lanes c1 = upper(c0);
    Lanes c2 = all(at.stream);
    Lanes c3 = all(at.stream >> 32U);
    for (const auto& round : keys) {
      const Lanes first = multiply(c0, first_multiplier);
      const Lanes second = multiply(c2, second_multiplier);
      c0 = exclusive_or(upper(second), c1, round[0]);
      c2 = exclusive_or(upper(first), c3, round[1]);
      c1 = second;
      c3 = first;
    }
    store_pairs(out + 4 * i, join(c0, c1), join(c2, c3));
  }
}

// ---- distributions ------------------------------------------------------------------------------------------------

// The upper 24 bits as an integer that a float holds exactly; conversion from signed integers is the fast one.
inline float upper_bits(std::uint32_t bits, int shift) {
  return static_cast<float>(static_cast<std::int32_t>(bits >> static_cast<unsigned>(shift)));
}
inline double upper_bits(std::uint64_t bits) {
  return static_cast<double>(static_cast<std::int64_t>(bits >> 11U));
}

void uniform_f32(float* out, const std::uint32_t* bits, std::int64_t count, float low, float high, float top,
                 int shift) {
  const float unit = math::float_of(static_cast<std::uint32_t>(127 - (32 - shift)) << 23U) * (high - low);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = low + upper_bits(bits[i], shift) * unit;
    out[i] = value > top ? top : value;
  }
}

void uniform_f64(double* out, const std::uint64_t* bits, std::int64_t count, double low, double high,
                 double top) {
  const double unit = 0x1p-53 * (high - low);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = low + upper_bits(bits[i]) * unit;
    out[i] = value > top ? top : value;
  }
}

void normal_f32(float* out, const std::uint32_t* bits, std::int64_t count, float mean, float deviation) {
  const std::int64_t pairs = (count + 1) / 2;
#pragma omp simd
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float u = (upper_bits(bits[2 * i], 8) + 1.0F) * 0x1p-24F;  // in (0, 1]
    const float turn = upper_bits(bits[2 * i + 1], 8) * 0x1p-24F;    // in [0, 1)
    const float radius = deviation * math::sqrt(-2.0F * math::log(u));
    // The turn is a number of quarters and a rest in [-1/8, 1/8]; polynomials for sine and cosine after
    // Cephes.
    const std::int32_t quarters = static_cast<std::int32_t>(turn * 4.0F + 0.5F);
    const float x = (turn - 0.25F * static_cast<float>(quarters)) * 6.28318530717958648F;
    const float x2 = x * x;
    const float sine = ((-1.9515295891e-4F * x2 + 8.3321608736e-3F) * x2 - 1.6666654611e-1F) * x2 * x + x;
    const float cosine =
        ((2.443315711809948e-5F * x2 - 1.388731625493765e-3F) * x2 + 4.166664568298827e-2F) * x2 * x2 -
        0.5F * x2 + 1.0F;
    const bool swapped = (quarters & 1) != 0;
    const float a = swapped ? sine : cosine;
    const float b = swapped ? cosine : sine;
    const float first = ((quarters + 1) & 2) != 0 ? -a : a;
    const float second = (quarters & 2) != 0 ? -b : b;
    out[2 * i] = mean + radius * first;
    out[2 * i + 1] = mean + radius * second;
  }
}

void normal_f64(double* out, const std::uint64_t* bits, std::int64_t count, double mean, double deviation) {
  const std::int64_t pairs = (count + 1) / 2;
#pragma omp simd
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double u = (upper_bits(bits[2 * i]) + 1.0) * 0x1p-53;
    const double angle = upper_bits(bits[2 * i + 1]) * (0x1p-53 * 6.28318530717958647692);
    const double radius = deviation * math::sqrt(-2.0 * math::log(u));
    out[2 * i] = mean + radius * ::cos(angle);
    out[2 * i + 1] = mean + radius * ::sin(angle);
  }
}

void at_most(bool* out, const std::uint32_t* bits, std::int64_t count, std::uint32_t last) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) out[i] = bits[i] <= last;
}

void integers_32(std::int64_t* out, const std::uint32_t* bits, std::int64_t count, std::int64_t low,
                 std::uint64_t range) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + ((bits[i] * range) >> 32U));
  }
}

void integers_64(std::int64_t* out, const std::uint64_t* bits, std::int64_t count, std::int64_t low,
                 std::uint64_t range) {
  __extension__ using Wide = unsigned __int128;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto upper_half = static_cast<std::uint64_t>((static_cast<Wide>(bits[i]) * range) >> 64U);
    out[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + upper_half);
  }
}

void drop_f32(float* out, const float* in, const std::uint32_t* bits, std::int64_t count, std::uint32_t last,
              float scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) out[i] = bits[i] <= last ? 0.0F : in[i] * scale;
}

void drop_f64(double* out, const double* in, const std::uint32_t* bits, std::int64_t count,
              std::uint32_t last, double scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) out[i] = bits[i] <= last ? 0.0 : in[i] * scale;
}

}  // namespace

constexpr RandomLoops kRandomLoops{&philox_bits, &uniform_f32, &uniform_f64, &normal_f32, &normal_f64,
                                   &at_most,     &integers_32, &integers_64, &drop_f32,   &drop_f64};

}  // namespace tutti::cpu::TUTTI_ISA
