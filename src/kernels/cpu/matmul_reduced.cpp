// SPDX-License-Identifier: Apache-2.0
// f32 products on bf16 multipliers (set_float32_matmul_precision): "medium" rounds both operands to bf16;
// "high" splits each into high + low and sums three products in f32, high*high + high*low + low*high, which
// is one product three times as deep:
//
//   a' = [a_high | a_high | a_low]  (m x 3k)      b' = [b_high ; b_low ; b_high]  (3k x n)
#include <algorithm>

#include "core/parallel_for.hpp"
#include "kernels/cpu/isa/matmul_kernels.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/onednn/adapter.hpp"
#include "kernels/cpu/view.hpp"

namespace tutti::cpu {

void split_bf16(const float* in, std::int64_t stride, std::int64_t outer, std::int64_t inner,
                bool low_in_middle, std::uint16_t* out) {
  constexpr std::int64_t kChunk = 1 << 14;
  const std::int64_t pieces = (inner + kChunk - 1) / kChunk;
  parallel_for(0, outer * pieces, std::max<std::int64_t>(1, kChunk / inner),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t row = i / pieces, first = i % pieces * kChunk;
                   std::uint16_t* high = out + row * 3 * inner + first;
                   std::uint16_t *middle = high + inner, *last = middle + inner;
                   matmul_kernels().split(in + row * stride + first, high, low_in_middle ? last : middle,
                                          low_in_middle ? middle : last, std::min(kChunk, inner - first));
                 }
               });
}

namespace {

using onednn::Purpose;

// Below these sizes splitting costs more than AMX gains (measured, one core: 128x784x512 gains nothing with
// unpacked weights).
constexpr std::int64_t kLeastSide = 128;
constexpr std::int64_t kLeastDepth = 64;
constexpr std::int64_t kLeastWork = 1 << 26;
constexpr std::int64_t kLeastWorkOfOne = 1 << 17;

bool gains_from_one_product(const MatmulProblem& p) {
  return onednn::capabilities().bf16 && p.m * p.n * p.k >= kLeastWorkOfOne;
}

bool gains_from_three_products(const MatmulProblem& p) {
  return onednn::capabilities().amx_bf16 && std::min(p.m, p.n) >= kLeastSide && p.k >= kLeastDepth &&
         p.m * p.n * p.k >= kLeastWork;
}

// Splits an operand [batch..., rows, columns] along its dim k (rows of b, columns of a) into workspace.
void take_split(const MatmulProblem& problem, MatrixView& matrix, std::int64_t* batch_strides, bool is_a,
                Purpose copy_purpose, Purpose split_purpose) {
  const std::int64_t rows = is_a ? problem.m : problem.k, columns = is_a ? problem.k : problem.n;
  const std::int64_t outside = is_a ? rows : columns;  // the dim that isn't k
  // Either rows of k elements each, or k rows that lie one after the other: then the whole is one long row.
  std::int64_t k_stride = is_a ? matrix.column : matrix.row,
               outside_stride = is_a ? matrix.row : matrix.column;
  const bool k_dense = k_stride == 1 && outside_stride >= problem.k;
  const bool flat = outside_stride == 1 && k_stride == outside;
  if (problem.batch_ndim != 0 || !(k_dense || flat)) {
    take_contiguous(problem, matrix, batch_strides, TUTTI_F32, TUTTI_F32, rows, columns, copy_purpose);
    k_stride = is_a ? matrix.column : matrix.row;
    outside_stride = is_a ? matrix.row : matrix.column;
  }
  const bool by_rows = k_stride == 1;
  // Contiguous copies of a batch: a broadcast dim (stride 0) is there once.
  std::int64_t matrices = 1;
  for (int d = 0; d < problem.batch_ndim; ++d) matrices *= batch_strides[d] != 0 ? problem.batch_sizes[d] : 1;
  const std::int64_t elements = rows * columns;
  auto* split = static_cast<std::uint16_t*>(onednn::workspace(
      split_purpose, static_cast<std::size_t>(matrices * elements * 3) * sizeof(std::uint16_t)));
  for (std::int64_t i = 0; i < matrices; ++i) {
    const float* in = static_cast<const float*>(matrix.data) + i * elements;
    if (by_rows) {
      split_bf16(in, outside_stride, outside, problem.k, !is_a, split + i * 3 * elements);
    } else {
      split_bf16(in, elements, 1, elements, !is_a, split + i * 3 * elements);
    }
  }
  for (int d = 0; d < problem.batch_ndim; ++d) batch_strides[d] *= 3;
  const std::int64_t new_k_stride = by_rows ? 1 : outside, new_outside = by_rows ? 3 * problem.k : 1;
  matrix = is_a ? MatrixView{split, new_outside, new_k_stride} : MatrixView{split, new_k_stride, new_outside};
}

}  // namespace

void matmul_reduced_precision(const MatmulProblem& problem, std::int32_t precision) {
  MatmulProblem reduced = problem;
  reduced.dtype = TUTTI_BF16;
  reduced.slot = nullptr;
  if (precision >= 2 && gains_from_one_product(problem)) {
    take_contiguous(problem, reduced.a, reduced.a_batch, TUTTI_F32, TUTTI_BF16, problem.m, problem.k,
                    Purpose::kLeft);
    take_contiguous(problem, reduced.b, reduced.b_batch, TUTTI_F32, TUTTI_BF16, problem.k, problem.n,
                    Purpose::kRight);
  } else if (precision == 1 && gains_from_three_products(problem)) {
    take_split(problem, reduced.a, reduced.a_batch, true, Purpose::kLeft, Purpose::kLeftSplit);
    take_split(problem, reduced.b, reduced.b_batch, false, Purpose::kRight, Purpose::kRightSplit);
    reduced.k = 3 * problem.k;
  } else {
    matmul_onednn_any_strides(problem);
    return;
  }
  matmul_onednn_any_strides(reduced);
}

}  // namespace tutti::cpu
