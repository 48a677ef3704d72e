// SPDX-License-Identifier: Apache-2.0
// Blocked matrix product on packed panels. One pass over k for each element of the result, in order, so the bits don't
// depend on the tile a row or column falls into.
//
//   a panel: strips of kRows rows,       k after k: kRows numbers         \  micro_kernel: kRows x kColumns sums
//   b panel: strips of kColumns columns, k after k: kColumns numbers      /  stay in registers over one k block
#include "kernels/cpu/isa/matmul_kernels.hpp"

#include "backend/backend.h"

namespace tutti::cpu::TUTTI_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kRows = 8;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
constexpr int kRows = 6;
#else
constexpr int kVectorBytes = 16;
constexpr int kRows = 4;
#endif

template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(kVectorBytes), aligned(sizeof(T))));
  static constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));
  static constexpr int kColumns = 2 * kWidth;
};

constexpr int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

// Packs `count` rows (stride `row`) times `depth` elements (stride `column`) into strips of `Strip` rows, zero-padded.
template <int Strip, class In, class Sum>
void pack(const In* in, int64_t row, int64_t column, int64_t count, int64_t depth, Sum* out) {
  for (int64_t first = 0; first < count; first += Strip) {
    const int64_t rows = least(Strip, count - first);
    const In* strip = in + first * row;
    if (rows == Strip && row == 1) {
      for (int64_t p = 0; p < depth; ++p) {
        for (int r = 0; r < Strip; ++r) out[p * Strip + r] = static_cast<Sum>(strip[p * column + r]);
      }
    } else {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t p = 0; p < depth; ++p)
          out[p * Strip + r] = static_cast<Sum>(strip[r * row + p * column]);
      }
      for (int64_t r = rows; r < Strip; ++r) {
        for (int64_t p = 0; p < depth; ++p) out[p * Strip + r] = Sum{0};
      }
    }
    out += depth * Strip;
  }
}

template <class Sum>
void micro_kernel(const Sum* a, const Sum* b, int64_t depth, Sum* sums, int64_t sums_row) {
  using Vector = typename Lanes<Sum>::Vector;
  constexpr int kWidth = Lanes<Sum>::kWidth;
  Vector left[kRows], right[kRows];
  for (int r = 0; r < kRows; ++r) {
    left[r] = *reinterpret_cast<const Vector*>(sums + r * sums_row);
    right[r] = *reinterpret_cast<const Vector*>(sums + r * sums_row + kWidth);
  }
  for (int64_t p = 0; p < depth; ++p) {
    const Vector b_left = *reinterpret_cast<const Vector*>(b);
    const Vector b_right = *reinterpret_cast<const Vector*>(b + kWidth);
    for (int r = 0; r < kRows; ++r) {
      left[r] += a[r] * b_left;
      right[r] += a[r] * b_right;
    }
    a += kRows;
    b += 2 * kWidth;
  }
  for (int r = 0; r < kRows; ++r) {
    *reinterpret_cast<Vector*>(sums + r * sums_row) = left[r];
    *reinterpret_cast<Vector*>(sums + r * sums_row + kWidth) = right[r];
  }
}

inline float erf_of(float x) { return __builtin_erff(x); }
inline double erf_of(double x) { return __builtin_erf(x); }

template <class Sum>
inline Sum apply_epilogue(Sum x, int32_t epilogue) {
  if (epilogue == TUTTI_EPILOGUE_RELU) return x < Sum{0} ? Sum{0} : x;  // NaN passes
  if constexpr (Sum(0.5) != Sum(0)) {
    if (epilogue == TUTTI_EPILOGUE_GELU)
      return Sum(0.5) * x * (Sum(1) + erf_of(x * Sum(0.70710678118654752440)));
  }
  return x;
}

template <class In, class Sum>
void store(const GemmTile& tile, const Sum* sums, int64_t sums_row) {
  const In* bias = static_cast<const In*>(tile.bias);
  for (int64_t i = 0; i < tile.m; ++i) {
    const Sum* row = sums + i * sums_row;
    In* out = static_cast<In*>(tile.out) + i * tile.out_row;
    if (tile.out_column == 1 && !bias && !tile.accumulate && tile.epilogue == TUTTI_EPILOGUE_NONE) {
      for (int64_t j = 0; j < tile.n; ++j) out[j] = static_cast<In>(row[j]);
      continue;
    }
    for (int64_t j = 0; j < tile.n; ++j) {
      Sum value = row[j];
      if (bias) value += static_cast<Sum>(bias[j * tile.bias_stride]);
      value = apply_epilogue(value, tile.epilogue);
      In& target = out[j * tile.out_column];
      if (tile.accumulate) value += static_cast<Sum>(target);
      target = static_cast<In>(value);
    }
  }
}

// Integers are summed in Sum, which is at least 32 bits wide; narrower results wrap as the sum in their own width would.
template <class In, class Sum>
void gemm(const GemmTile& tile) {
  constexpr int kColumns = Lanes<Sum>::kColumns;
  const int64_t depth = least(tile.k, kGemmDepth);
  const int64_t rows = round_up(tile.m, kRows), columns = round_up(tile.n, kColumns);
  Sum* a_panel = static_cast<Sum*>(tile.workspace);
  Sum* b_panel = a_panel + round_up(rows * depth, Lanes<Sum>::kWidth);
  Sum* sums = b_panel + columns * depth;
  for (int64_t i = 0; i < rows * columns; ++i) sums[i] = Sum{0};
  for (int64_t first = 0; first < tile.k; first += kGemmDepth) {
    const int64_t block = least(kGemmDepth, tile.k - first);
    const In* a = static_cast<const In*>(tile.a) + first * tile.a_column;
    const In* b = static_cast<const In*>(tile.b) + first * tile.b_row;
    pack<kRows>(a, tile.a_row, tile.a_column, tile.m, block, a_panel);
    pack<kColumns>(b, tile.b_column, tile.b_row, tile.n, block, b_panel);
    for (int64_t j = 0; j < columns; j += kColumns) {
      for (int64_t i = 0; i < rows; i += kRows) {
        micro_kernel(a_panel + i * block, b_panel + j * block, block, sums + i * columns + j, columns);
      }
    }
  }
  store<In>(tile, sums, columns);
}

template <class T>
void add(T* sums, const T* part, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += part[i];
}

// Sums of kVectors vectors of columns; each column has kPhases partial sums, of every kPhases-th row.
template <int kVectors>
void sum_columns(const float* rows, int64_t count, int64_t width, float* sums) {
  using Vector = Lanes<float>::Vector;
  constexpr int kPhases = 4, kWidth = Lanes<float>::kWidth;
  Vector partial[kPhases][kVectors] = {};
  int64_t r = 0;
  for (; r + kPhases <= count; r += kPhases) {
    for (int phase = 0; phase < kPhases; ++phase) {
      const float* row = rows + (r + phase) * width;
      for (int v = 0; v < kVectors; ++v)
        partial[phase][v] += *reinterpret_cast<const Vector*>(row + v * kWidth);
    }
  }
  for (; r < count; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      partial[0][v] += *reinterpret_cast<const Vector*>(rows + r * width + v * kWidth);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    *reinterpret_cast<Vector*>(sums + v * kWidth) =
        (partial[0][v] + partial[1][v]) + (partial[2][v] + partial[3][v]);
  }
}

void column_sums(const float* rows, int64_t count, int64_t width, float* sums) {
  constexpr int kWidth = Lanes<float>::kWidth;
  int64_t c = 0;
  for (; c + 2 * kWidth <= width; c += 2 * kWidth) sum_columns<2>(rows + c, count, width, sums + c);
  for (; c + kWidth <= width; c += kWidth) sum_columns<1>(rows + c, count, width, sums + c);
  for (; c < width; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < count; ++r) sum += static_cast<double>(rows[r * width + c]);
    sums[c] = static_cast<float>(sum);
  }
}

void relu_f32(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = x[i] < 0.0F ? 0.0F : x[i];
}

void relu_16(uint16_t* x, int64_t count, uint16_t infinity) {
  const auto negative_infinity = static_cast<uint16_t>(infinity | 0x8000U);
  for (int64_t i = 0; i < count; ++i) x[i] = x[i] > 0x8000U && x[i] <= negative_infinity ? uint16_t{0} : x[i];
}

inline uint16_t round_to_bf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  const uint32_t quiet_nan = (bits >> 16U) | 0x40U;
  return static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded);
}

void to_bf16(const float* in, uint16_t* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = round_to_bf16(in[i]);
}

void split(const float* in, uint16_t* high, uint16_t* high_again, uint16_t* low, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t rounded = round_to_bf16(in[i]);
    const float rest = in[i] - __builtin_bit_cast(float, static_cast<uint32_t>(rounded) << 16U);
    high[i] = rounded;
    high_again[i] = rounded;
    low[i] = round_to_bf16(rest - rest == 0.0F ? rest : 0.0F);  // what rounds to infinity has no remainder
  }
}

}  // namespace

extern const MatmulKernels kMatmulKernels;
const MatmulKernels kMatmulKernels = {gemm<double, double>,
                                      gemm<float, float>,
                                      gemm<int64_t, int64_t>,
                                      gemm<int32_t, int32_t>,
                                      gemm<int16_t, int32_t>,
                                      gemm<int8_t, int32_t>,
                                      gemm<uint8_t, int32_t>,
                                      add<float>,
                                      add<double>,
                                      column_sums,
                                      relu_f32,
                                      relu_16,
                                      split,
                                      to_bf16};

}  // namespace tutti::cpu::TUTTI_ISA
