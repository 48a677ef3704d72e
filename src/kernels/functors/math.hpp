// SPDX-License-Identifier: Apache-2.0
// Scalar maths for float and double that loops over arrays vectorise: branch-free, exact for infinities, NaN
// and subnormals, and free of out-of-line inline code.
//
// float: own polynomials after Cephes (Moshier), 1 to 3 ulp. double: the C library's functions, declared with
// GCC's simd attribute so that loops call libmvec's vector forms (glibc declares them for -ffast-math only,
// which we must not use: it would break the checks for infinities). Other compilers call the scalar
// functions. In CUDA device code all are the device's own functions.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tutti/core/half.hpp"  // TUTTI_HOST_DEVICE

#if defined(__CUDACC__)
#define TUTTI_FUNCTOR TUTTI_HOST_DEVICE __forceinline__
#else
// Always inlined: a copy that the linker could pick for callers of another instruction set must not exist.
#define TUTTI_FUNCTOR [[gnu::always_inline]] inline
#endif

#if defined(__CUDACC__)
#include <cmath>
#else
#if defined(__linux__)
#include <features.h>
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__OPTIMIZE__) && \
    defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 35)
#define TUTTI_VECTOR_LIBM __attribute__((simd("notinbranch")))
#endif
#endif
#if !defined(TUTTI_VECTOR_LIBM)
#define TUTTI_VECTOR_LIBM
#endif
extern "C" {
double exp(double) noexcept TUTTI_VECTOR_LIBM;
double log(double) noexcept TUTTI_VECTOR_LIBM;
double sin(double) noexcept TUTTI_VECTOR_LIBM;
double cos(double) noexcept TUTTI_VECTOR_LIBM;
double tanh(double) noexcept TUTTI_VECTOR_LIBM;
double erfc(double) noexcept TUTTI_VECTOR_LIBM;
double pow(double, double) noexcept TUTTI_VECTOR_LIBM;
float powf(float, float) noexcept TUTTI_VECTOR_LIBM;
}
#endif

namespace tutti::functors::math {

TUTTI_FUNCTOR std::uint32_t bits_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
TUTTI_FUNCTOR float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

inline constexpr float kInfinity = __builtin_inff();
inline constexpr double kSqrtHalf = 0.70710678118654752440;
inline constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;

template <class T>
TUTTI_FUNCTOR T absolute(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return __builtin_fabsf(x);
  } else {
    return __builtin_fabs(x);
  }
}

TUTTI_FUNCTOR float sqrt(float x) { return __builtin_sqrtf(x); }
TUTTI_FUNCTOR double sqrt(double x) { return __builtin_sqrt(x); }

#if defined(__CUDA_ARCH__)

TUTTI_FUNCTOR float exp(float x) { return ::expf(x); }
TUTTI_FUNCTOR float exp_negated(float magnitude) { return ::expf(-magnitude); }
TUTTI_FUNCTOR float log(float x) { return ::logf(x); }
TUTTI_FUNCTOR float tanh(float x) { return ::tanhf(x); }

#else

// exp(r) for |r| at most log(2) / 2 and a little more.
TUTTI_FUNCTOR float exp_polynomial(float r) {
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  return p * (r * r) + r + 1.0F;
}

// x - n log(2), log(2) in two parts.
TUTTI_FUNCTOR float without_powers(float x, float n) { return (x - n * 0.693359375F) + n * 2.12194440e-4F; }

inline constexpr float kLog2E = 1.44269504088896341F;
// Adding it to a float below 2^22 leaves the nearest integer in the low bits.
inline constexpr float kRound = 0x1.8p23F;

// exp(high + low) for high in [-104, 0] and |low| at most 0.1: the sum need not be representable.
TUTTI_FUNCTOR float exp_nonpositive(float high, float low) {
  // The low bits become n + 24 + 127, the biased exponent of 2^(n + 24), which is normal for all n; the shift drops
  // the other bits. So only the last product can be subnormal, and it is rounded once.
  constexpr float kBiased = kRound + 151.0F;
  const float shifted = high * kLog2E + kBiased;
  const float p = exp_polynomial(without_powers(high, shifted - kBiased) + low);
  return p * float_of(bits_of(shifted) << 23U) * 0x1p-24F;
}

TUTTI_FUNCTOR float exp(float x) {
  float bounded =
      x > 89.0F ? 89.0F : x;  // infinity above, zero below; comparisons with NaN are false and keep it
  bounded = bounded < -104.0F ? -104.0F : bounded;
  const float shifted = bounded * kLog2E + kRound;
  const float p = exp_polynomial(without_powers(bounded, shifted - kRound));
  // 2^n in two factors, so that neither over- nor underflows before the last product.
  const std::uint32_t biased_twice = bits_of(shifted) - bits_of(kRound) + 254U;
  const std::uint32_t half = biased_twice >> 1U;
  return p * float_of(half << 23U) * float_of((biased_twice - half) << 23U);
}

// exp(-magnitude)
TUTTI_FUNCTOR float exp_negated(float magnitude) {
  return exp_nonpositive(magnitude > 104.0F ? -104.0F : -magnitude, 0.0F);
}

TUTTI_FUNCTOR float log(float x) {
  const bool subnormal = x < 0x1p-126F;
  const float scaled = subnormal ? x * 0x1p23F : x;
  // The mantissa is taken from [sqrt(1/2), sqrt(2)).
  constexpr std::uint32_t kSqrtHalfBits = 0x3f3504f3U;
  const std::uint32_t shifted = bits_of(scaled) - kSqrtHalfBits;
  const float e = static_cast<float>((static_cast<std::int32_t>(shifted) >> 23) - (subnormal ? 23 : 0));
  const float z = float_of((shifted & 0x7fffffU) + kSqrtHalfBits) - 1.0F;
  float p = 7.0376836292e-2F;
  p = p * z - 1.1514610310e-1F;
  p = p * z + 1.1676998740e-1F;
  p = p * z - 1.2420140846e-1F;
  p = p * z + 1.4249322787e-1F;
  p = p * z - 1.6668057665e-1F;
  p = p * z + 2.0000714765e-1F;
  p = p * z - 2.4999993993e-1F;
  p = p * z + 3.3333331174e-1F;
  const float z2 = z * z;
  const float rest = p * z * z2 - 2.12194440e-4F * e - 0.5F * z2;
  float result = z + rest + 0.693359375F * e;
  result = x == kInfinity ? x : result;
  result = x == 0.0F ? -kInfinity : result;
  result = x < 0.0F ? float_of(0x7fc00000U) : result;
  return x != x ? x : result;
}

TUTTI_FUNCTOR float tanh(float x) {
  const float magnitude = absolute(x);
  const float s = x * x;
  float p = -5.70498872745e-3F;
  p = p * s + 2.06390887954e-2F;
  p = p * s - 5.37397155531e-2F;
  p = p * s + 1.33314422036e-1F;
  p = p * s - 3.33332819422e-1F;
  const float small = p * s * x + x;
  const float e = exp_negated(2.0F * magnitude);
  const float large = (1.0F - e) / (1.0F + e);
  return magnitude >= 0.625F ? __builtin_copysignf(large, x) : small;
}

#endif

TUTTI_FUNCTOR double exp(double x) { return ::exp(x); }
TUTTI_FUNCTOR double exp_negated(double magnitude) { return ::exp(-magnitude); }
TUTTI_FUNCTOR double log(double x) { return ::log(x); }
TUTTI_FUNCTOR double tanh(double x) { return ::tanh(x); }
TUTTI_FUNCTOR float pow(float a, float b) { return ::powf(a, b); }
TUTTI_FUNCTOR double pow(double a, double b) { return ::pow(a, b); }

// 1 / (1 + exp(-x)) without overflow on either side.
template <class T>
TUTTI_FUNCTOR T sigmoid(T x) {
  const T e = exp_negated(absolute(x));
  return (x >= T(0) ? T(1) : e) / (T(1) + e);
}

// The normal distribution's lower tail Q(t) = Phi(-t) and density at t >= 0. exp(-t*t/2) is taken of t*t in
// two parts: rounding t*t would cost a relative error of t*t/2 ulp.
template <class T>
struct NormalTail {
  T tail;
  T density;
};

#if !defined(__CUDA_ARCH__)
// t at most 14.4, where the tail is below the least subnormal.
TUTTI_FUNCTOR NormalTail<float> normal_tail(float t) {
#if defined(__FMA__)
  const float square = t * t;
  const float e = exp_nonpositive(-0.5F * square, -0.5F * __builtin_fmaf(t, t, -square));
#else
  const float high = float_of(bits_of(t) & 0xfffff000U);  // its square is exact
  const float e = exp_nonpositive(-0.5F * high * high, -0.5F * (t - high) * (t + high));
#endif
  // Minimax polynomial (relative error 3.2e-8 for t <= 14.3) of Q(t) exp(t*t/2) / u in w = 2u - 1, u = 1 / (1
  // + 0.35 t).
  const float u = 1.0F / (1.0F + 0.35F * t);
  const float w = u + u - 1.0F;
  float p = -1.13882095808e-4F;
  p = p * w + 2.14027695159e-4F;
  p = p * w + 6.90068246004e-4F;
  p = p * w - 1.75436501542e-3F;
  p = p * w - 5.10874706323e-3F;
  p = p * w + 1.02338553109e-2F;
  p = p * w + 7.10989457939e-2F;
  p = p * w + 1.71495804385e-1F;
  p = p * w + 2.53244276772e-1F;
  return {e * (u * p), e * static_cast<float>(kInverseSqrtTwoPi)};
}
#else
TUTTI_FUNCTOR NormalTail<float> normal_tail(float t) {
  return {0.5F * ::erfcf(t * static_cast<float>(kSqrtHalf)),
          ::expf(-0.5F * t * t) * static_cast<float>(kInverseSqrtTwoPi)};
}
#endif
TUTTI_FUNCTOR NormalTail<double> normal_tail(double t) {
  return {0.5 * ::erfc(t * kSqrtHalf), ::exp(-0.5 * t * t) * kInverseSqrtTwoPi};
}

}  // namespace tutti::functors::math
