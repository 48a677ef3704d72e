// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon et al. 2011) for many counters at once, and the distributions made of its bits.
#pragma once

#include <cstdint>

namespace tutti::cpu {

struct PhiloxCounters {
  std::uint64_t seed;
  std::uint64_t stream;
  std::uint64_t first;  // counters first, first + 1, ...
};

struct RandomLoops {
  // Numbers of `counters` counters, four each; out has room for a multiple of eight counters.
  void (*bits)(std::uint32_t* out, PhiloxCounters at, std::int64_t counters);
  // out[i] = low + (high - low) * u, u of the upper 32 - shift bits of number i; at most `top`.
  void (*uniform_f32)(float* out, const std::uint32_t* bits, std::int64_t count, float low, float high,
                      float top, int shift);
  void (*uniform_f64)(double* out, const std::uint64_t* bits, std::int64_t count, double low, double high,
                      double top);
  // Box and Muller 1958 on pairs of numbers; writes pairs, so out has room for an even count.
  void (*normal_f32)(float* out, const std::uint32_t* bits, std::int64_t count, float mean, float deviation);
  void (*normal_f64)(double* out, const std::uint64_t* bits, std::int64_t count, double mean,
                     double deviation);
  // out[i] = number i <= last
  void (*at_most)(bool* out, const std::uint32_t* bits, std::int64_t count, std::uint32_t last);
  // out[i] = low + floor(number i * range / 2^32), or / 2^64 of 64-bit numbers
  void (*integers_32)(std::int64_t* out, const std::uint32_t* bits, std::int64_t count, std::int64_t low,
                      std::uint64_t range);
  void (*integers_64)(std::int64_t* out, const std::uint64_t* bits, std::int64_t count, std::int64_t low,
                      std::uint64_t range);
  // out[i] = number i <= last ? 0 : in[i] * scale
  void (*drop_f32)(float* out, const float* in, const std::uint32_t* bits, std::int64_t count,
                   std::uint32_t last, float scale);
  void (*drop_f64)(double* out, const double* in, const std::uint32_t* bits, std::int64_t count,
                   std::uint32_t last, double scale);
};

}  // namespace tutti::cpu

#if !defined(TUTTI_ISA)
#include "kernels/cpu/isa/select.hpp"
namespace tutti::cpu {
TUTTI_ISA_TABLE(RandomLoops, kRandomLoops, random_loops)
}
#endif
