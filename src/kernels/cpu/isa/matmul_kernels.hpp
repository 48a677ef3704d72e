// SPDX-License-Identifier: Apache-2.0
// The library's own matrix product: dtypes that oneDNN lacks, and products too small for its overhead.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace tutti::cpu {

// out[m, n] = epilogue(a[m, k] @ b[k, n] + bias[n]) (+ out if accumulate). Strides count elements and may be
// anything. At most kGemmRows rows and kGemmColumns columns a call; k is not limited.
struct GemmTile {
  const void* a;
  int64_t a_row, a_column;
  const void* b;
  int64_t b_row, b_column;
  const void* bias;  // may be null
  int64_t bias_stride;
  void* out;
  int64_t out_row, out_column;
  int64_t m, n, k;
  int32_t epilogue;  // TUTTI_EPILOGUE_*
  bool accumulate;
  void* workspace;  // kGemmWorkspace bytes, 64-byte aligned
};

inline constexpr int64_t kGemmRows = 128;
inline constexpr int64_t kGemmColumns = 128;
inline constexpr int64_t kGemmDepth = 256;  // k is walked in blocks of this size, whose panels stay in cache
// Packed panels of a and b and the sums, each padded to whole register tiles (at most 16 rows, 64 columns).
inline constexpr size_t kGemmWorkspace =
    8 * static_cast<size_t>((kGemmRows + 16) * kGemmDepth + kGemmDepth * (kGemmColumns + 64) +
                            (kGemmRows + 16) * (kGemmColumns + 64));

using GemmFunction = void (*)(const GemmTile& tile);

struct MatmulKernels {
  GemmFunction f64, f32, i64, i32, i16, i8, u8;
  // sums[i] += part[i]: the fixed-order sum of partial weight gradients.
  void (*add_f32)(float* sums, const float* part, int64_t count);
  void (*add_f64)(double* sums, const double* part, int64_t count);
  // sums[c] = sum over rows of rows[r * width + c], in a fixed order.
  void (*column_sums)(const float* rows, int64_t count, int64_t width, float* sums);
  // x = relu(x) in place; NaN stays, as oneDNN's own relu doesn't do. 16-bit floats are told apart by the bits of infinity.
  void (*relu_f32)(float* x, int64_t count);
  void (*relu_16)(uint16_t* x, int64_t count, uint16_t infinity);
  // in = high + low in bf16, up to 16 bits of the fraction; `high` is written twice.
  void (*split)(const float* in, uint16_t* high, uint16_t* high_again, uint16_t* low, int64_t count);
  // out[i] = bf16(in[i])
  void (*to_bf16)(const float* in, uint16_t* out, int64_t count);
};

namespace v2 {
extern const MatmulKernels kMatmulKernels;
}
namespace v3 {
extern const MatmulKernels kMatmulKernels;
}
namespace v4 {
extern const MatmulKernels kMatmulKernels;
}

}  // namespace tutti::cpu
