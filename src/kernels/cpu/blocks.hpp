// SPDX-License-Identifier: Apache-2.0
// Blocks of elements on the stack between strided or half-precision arrays and the inner loops, which take
// contiguous arrays of a compute type: f16 and bf16 are computed as f32, every other dtype as itself.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa/convert.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

inline constexpr std::int64_t kBlock = 512;  // elements; four blocks of f64 fit in the first-level cache

// Elements that one call of a parallel_for body takes.
inline constexpr std::int64_t kGrain = 32768;

struct alignas(64) Block {
  unsigned char bytes[kBlock * 8];
};

inline std::int32_t compute_dtype(std::int32_t dtype) noexcept {
  return dtype == TUTTI_F16 || dtype == TUTTI_BF16 ? static_cast<std::int32_t>(TUTTI_F32) : dtype;
}

// block = elements of `dtype`, `stride` bytes apart (0: one element repeated), in the compute type.
inline void load_block(const ConvertLoops& loops, void* block, std::int32_t dtype, const char* in,
                       std::int64_t stride, std::int64_t count) {
  const std::int64_t size = element_size(dtype);
  const std::int32_t compute = compute_dtype(dtype);
  if (compute == dtype) {
    loops.gather[size_index(size)](block, in, stride, count);
  } else if (stride == size) {
    loops.convert[compute][dtype](block, in, count);
  } else {
    alignas(64) std::uint16_t halves[kBlock];
    loops.gather[1](halves, in, stride, count);
    loops.convert[compute][dtype](block, halves, count);
  }
}

// The other way round; no element may stand twice in out.
inline void store_block(const ConvertLoops& loops, char* out, std::int64_t stride, std::int32_t dtype,
                        const void* block, std::int64_t count) {
  const std::int64_t size = element_size(dtype);
  const std::int32_t compute = compute_dtype(dtype);
  if (compute == dtype) {
    loops.scatter[size_index(size)](out, stride, block, count);
  } else if (stride == size) {
    loops.convert[dtype][compute](out, block, count);
  } else {
    alignas(64) std::uint16_t halves[kBlock];
    loops.convert[dtype][compute](halves, block, count);
    loops.scatter[1](out, stride, halves, count);
  }
}

// A number as one element of a dtype.
struct ScalarElement {
  alignas(8) unsigned char bytes[8];
};
ScalarElement make_scalar(const tutti_scalar& value, std::int32_t dtype) noexcept;

}  // namespace tutti::cpu
