// SPDX-License-Identifier: Apache-2.0
// Inside of the matrix product: a call after its checks, and the routes that run it.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "kernels/cpu/onednn/workspace.hpp"

namespace tutti::cpu {

struct MatmulKernels;
// Of the instruction set in use.
const MatmulKernels& matmul_kernels();

// In place on floats of a dtype that oneDNN computes; NaN stays.
void relu(void* data, std::int64_t count, std::int32_t dtype);

// A strided matrix.
struct MatrixView {
  void* data = nullptr;
  std::int64_t row = 0, column = 0;  // strides in elements
};

// A matrix product over a batch whose dims are merged as far as the operands allow.
struct MatmulProblem {
  std::int32_t dtype = 0, out_dtype = 0, bias_dtype = 0;
  std::int64_t m = 0, n = 0, k = 0;
  MatrixView a, b, out;
  void* bias = nullptr;
  std::int64_t bias_stride = 1;
  std::int32_t epilogue = TUTTI_EPILOGUE_NONE;
  bool accumulate = false;

  int batch_ndim = 0;
  std::int64_t batch_sizes[TUTTI_MAX_DIMS];
  std::int64_t a_batch[TUTTI_MAX_DIMS], b_batch[TUTTI_MAX_DIMS],
      out_batch[TUTTI_MAX_DIMS];  // strides in elements

  tutti_packed_slot* slot = nullptr;
  std::uint64_t version = 0;

  std::int64_t batches() const noexcept {
    std::int64_t count = 1;
    for (int d = 0; d < batch_ndim; ++d) count *= batch_sizes[d];
    return count;
  }
};

// One matrix of the batch: the same problem without batch dims.
MatmulProblem batch_element(const MatmulProblem& problem, std::int64_t index);

// The library's own kernel: f64, f32 and integers.
void matmul_blocked(const MatmulProblem& problem);
// oneDNN: f32, and bf16 and f16 where the CPU has them; out may be f32. Rows or columns of a and b are dense, rows of out.
void matmul_onednn(const MatmulProblem& problem);
// The same for any strides: what isn't dense goes through a copy.
void matmul_onednn_any_strides(MatmulProblem problem);
// f32 operands as three bf16 products (precision 1: high) or one (2: medium), where the CPU gains from it.
void matmul_reduced_precision(const MatmulProblem& problem, std::int32_t precision);

// `outer` rows of `inner` f32, `stride` apart, become outer rows of 3 * inner bf16: [high | high | low], or [high | low | high]
// if low_in_middle.
void split_bf16(const float* in, std::int64_t stride, std::int64_t outer, std::int64_t inner,
                bool low_in_middle, std::uint16_t* out);

// Replaces an f32 or half operand [batch..., rows, columns] by a contiguous copy of dtype `to` in this thread's workspace; the
// batch strides follow.
void take_contiguous(const MatmulProblem& problem, MatrixView& matrix, std::int64_t* batch_strides,
                     std::int32_t from, std::int32_t to, std::int64_t rows, std::int64_t columns,
                     onednn::Purpose purpose);

}  // namespace tutti::cpu
