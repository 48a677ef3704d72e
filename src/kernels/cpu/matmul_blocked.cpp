// SPDX-License-Identifier: Apache-2.0
// Runs the library's own matrix product over tiles of the result, whose borders depend on the shape alone.
#include <algorithm>

#include "core/cpu_features.hpp"
#include "core/parallel_for.hpp"
#include "kernels/cpu/isa/matmul_kernels.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/onednn/workspace.hpp"
#include "kernels/cpu/status.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

const MatmulKernels& matmul_kernels() {
  static const MatmulKernels& chosen = active_isa() == IsaLevel::kV4   ? v4::kMatmulKernels
                                       : active_isa() == IsaLevel::kV3 ? v3::kMatmulKernels
                                                                       : v2::kMatmulKernels;
  return chosen;
}

void relu(void* data, std::int64_t count, std::int32_t dtype) {
  if (dtype == TUTTI_F32) {
    matmul_kernels().relu_f32(static_cast<float*>(data), count);
  } else {
    matmul_kernels().relu_16(static_cast<std::uint16_t*>(data), count, dtype == TUTTI_BF16 ? 0x7f80 : 0x7c00);
  }
}

namespace {

GemmFunction gemm_of(std::int32_t dtype) {
  const MatmulKernels& kernels = matmul_kernels();
  switch (dtype) {
    case TUTTI_F64: return kernels.f64;
    case TUTTI_F32: return kernels.f32;
    case TUTTI_I64: return kernels.i64;
    case TUTTI_I32: return kernels.i32;
    case TUTTI_I16: return kernels.i16;
    case TUTTI_I8: return kernels.i8;
    case TUTTI_U8: return kernels.u8;
    default: throw KernelError(TUTTI_UNSUPPORTED, concat("matmul: no kernel for ", dtype_text(dtype)));
  }
}

void* advance(void* data, std::int64_t elements, std::int64_t size) {
  return static_cast<char*>(data) + elements * size;
}

void run_tile(const MatmulProblem& one, GemmFunction gemm, std::int64_t row, std::int64_t column) {
  const std::int64_t size = element_size(one.dtype);
  GemmTile tile;
  tile.a = advance(one.a.data, row * one.a.row, size);
  tile.a_row = one.a.row, tile.a_column = one.a.column;
  tile.b = advance(one.b.data, column * one.b.column, size);
  tile.b_row = one.b.row, tile.b_column = one.b.column;
  tile.bias = one.bias ? advance(one.bias, column * one.bias_stride, size) : nullptr;
  tile.bias_stride = one.bias_stride;
  tile.out = advance(one.out.data, row * one.out.row + column * one.out.column, size);
  tile.out_row = one.out.row, tile.out_column = one.out.column;
  tile.m = std::min(kGemmRows, one.m - row);
  tile.n = std::min(kGemmColumns, one.n - column);
  tile.k = one.k;
  tile.epilogue = one.epilogue;
  tile.accumulate = one.accumulate;
  tile.workspace = onednn::workspace(onednn::Purpose::kGemm, kGemmWorkspace);
  gemm(tile);
}

}  // namespace

void matmul_blocked(const MatmulProblem& problem) {
  const GemmFunction gemm = gemm_of(problem.dtype);
  const std::int64_t tile_rows = (problem.m + kGemmRows - 1) / kGemmRows;
  const std::int64_t tile_columns = (problem.n + kGemmColumns - 1) / kGemmColumns;
  const std::int64_t tiles = tile_rows * tile_columns;
  if (tiles == 1 && problem.batch_ndim == 0) return run_tile(problem, gemm, 0, 0);
  constexpr std::int64_t kChunk = 1 << 18;  // multiplications worth a chunk of its own
  const std::int64_t cost = std::min(problem.m, kGemmRows) * std::min(problem.n, kGemmColumns) *
                            std::max<std::int64_t>(problem.k, 1);
  parallel_for(0, problem.batches() * tiles, std::max<std::int64_t>(1, kChunk / cost),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const MatmulProblem one = batch_element(problem, i / tiles);
                   const std::int64_t tile = i % tiles;
                   run_tile(one, gemm, tile / tile_columns * kGemmRows, tile % tile_columns * kGemmColumns);
                 }
               });
}

}  // namespace tutti::cpu
