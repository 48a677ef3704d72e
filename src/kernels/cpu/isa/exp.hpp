// SPDX-License-Identifier: Apache-2.0
// exp of a vector, for the softmax family: within 2 ulp, subnormal results and NaN included. Reduction to |r|
// <= ln(2)/2 (Cody and Waite), polynomial of degree 6 (Cephes expf) or a Taylor series (double), scaling by
// 2^n.
#pragma once

#include "kernels/cpu/isa/lanes.hpp"

namespace tutti::cpu::TUTTI_ISA {
namespace {

TUTTI_INLINE Floats exp_of(Floats x) {
  // Below -104 the result is 0 and chosen, not computed: underflow costs a hundred cycles, and masks make it common.
  const Floats zero{};
  const auto vanishes = x < -104.0F;
  const Floats most = broadcast<Floats>(89.0F);  // exp is infinite
  x = vanishes ? zero : x;
  x = most < x ? most : x;
  const Floats magic = broadcast<Floats>(0x1.8p23F);  // adding it rounds to an integer
  const Floats shifted = x * 1.44269504088896341F + magic;
  const Floats n = shifted - magic;
  Floats r = x - n * 0.693359375F;
  r = r + n * 2.12194440e-4F;
  Floats p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
#if defined(__AVX512F__)
  const Floats result =
      cast_bits<Floats>(_mm512_maskz_scalef_ps(0xffff, cast_bits<__m512>(p), cast_bits<__m512>(n)));
#else
  // In two steps, so that results below the least normal number keep their bits.
  using Signed = VectorOf<int32_t, kFloats>;
  const Signed exponent = cast_bits<Signed>(shifted) - cast_bits<Signed>(magic);
  const Signed half = exponent >> 1;
  const Floats result =
      p * cast_bits<Floats>((half + 127) << 23) * cast_bits<Floats>((exponent - half + 127) << 23);
#endif
  return vanishes ? zero : result;
}

TUTTI_INLINE Doubles exp_of(Doubles x) {
  const Doubles zero{};
  const auto vanishes = x < -746.0;
  const Doubles most = broadcast<Doubles>(710.0);
  x = vanishes ? zero : x;
  x = most < x ? most : x;
  const Doubles magic = broadcast<Doubles>(0x1.8p52);
  const Doubles shifted = x * 1.4426950408889634074 + magic;
  const Doubles n = shifted - magic;
  Doubles r = x - n * 6.93147180369123816490e-01;
  r = r - n * 1.90821492927058770002e-10;
  constexpr double kInverseFactorials[] = {
      1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
      1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,      1.0 / 24.0,      1.0 / 6.0,      0.5};
  Doubles p = broadcast<Doubles>(kInverseFactorials[0]);
  for (int i = 1; i < 12; ++i) p = p * r + kInverseFactorials[i];
  p = p * (r * r) + r + 1.0;
  using Signed = VectorOf<int64_t, kDoubles>;
  const Signed exponent = cast_bits<Signed>(shifted) - cast_bits<Signed>(magic);
  Doubles result = p;
  for (int step = 0; step < 2; ++step) {
    // v2 has no arithmetic shift of 64-bit lanes: halves of the exponent through an offset that makes it
    // positive.
    const Signed half = cast_bits<Signed>(cast_bits<Bits64>(exponent + 4096) >> 1U) - 2048;
    const Signed part = step == 0 ? half : exponent - half;
    result = result * cast_bits<Doubles>(cast_bits<Bits64>(part + 1023) << 52U);
  }
  return vanishes ? zero : result;
}

}  // namespace
}  // namespace tutti::cpu::TUTTI_ISA
