// SPDX-License-Identifier: Apache-2.0
// Pooling of images in N, H, W, C order: loops over rows of the result, vectors over channels.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/isa/select.hpp"

namespace tutti::cpu {

struct PoolShape {
  int64_t c, h, w;  // of x
  int64_t oh, ow;   // of y
  int64_t kernel[2], stride[2], padding[2], dilation[2];
  bool include_padding;  // average: padding counts
  int64_t divisor;       // average: 0: the window's size
  bool relu_gradient;    // max, forward: no place where the greatest is not above 0
};

// Rows [begin, end) of the n * oh rows of y (forward) or of the n * h rows of x (backward).
struct MaxPoolRows {
  const PoolShape* shape;
  const void* in;  // x, or the gradient of y
  void* out;       // y, or the gradient of x
  void* indices;   // written forward, read backward
  int64_t begin, end;
};
struct AveragePoolRows {
  const PoolShape* shape;
  const void* in;
  void* out;
  int64_t begin, end;
};

// Indexed by TUTTI_F64, TUTTI_F32, TUTTI_F16, TUTTI_BF16; max pooling also by the indices: 0 u8, 1 i32.
struct PoolLoops {
  void (*max_forward[4][2])(const MaxPoolRows& rows);
  void (*max_backward[4][2])(const MaxPoolRows& rows);
  void (*average_forward[4])(const AveragePoolRows& rows);
  void (*average_backward[4])(const AveragePoolRows& rows);
};

TUTTI_ISA_TABLE(PoolLoops, kPoolLoops, pool_loops)

}  // namespace tutti::cpu
