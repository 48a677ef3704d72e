// SPDX-License-Identifier: Apache-2.0
// Inner loops that move and convert elements.
#pragma once

#include <cstdint>

namespace tutti::cpu {

inline constexpr int kDTypes = 10;

// Index of the loops for elements of 1, 2, 4 and 8 bytes.
constexpr int size_index(std::int64_t bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3; }

struct ConvertLoops {
  // out[i] = in[i], both contiguous, by dtypes [out][in]; null on the diagonal.
  using Convert = void (*)(void* out, const void* in, std::int64_t count);
  Convert convert[kDTypes][kDTypes];
  // Contiguous from strided and back; strides in bytes, also 0.
  using Gather = void (*)(void* out, const void* in, std::int64_t stride, std::int64_t count);
  Gather gather[4];
  using Scatter = void (*)(void* out, std::int64_t stride, const void* in, std::int64_t count);
  Scatter scatter[4];
  // out[i] = *value, contiguous.
  using Fill = void (*)(void* out, const void* value, std::int64_t count);
  Fill fill[4];
  // Element (r, c) lies at r * out_stride + c * size in out and at r * size + c * in_stride in in.
  using Transpose = void (*)(void* out, std::int64_t out_stride, const void* in, std::int64_t in_stride,
                             std::int64_t rows, std::int64_t columns);
  Transpose transpose[4];
};

}  // namespace tutti::cpu

#if !defined(TUTTI_ISA)
#include "kernels/cpu/isa/select.hpp"
namespace tutti::cpu {
TUTTI_ISA_TABLE(ConvertLoops, kConvertLoops, convert_loops)
}
#endif
