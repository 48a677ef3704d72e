// SPDX-License-Identifier: Apache-2.0
// The inner loops of reduce and arg_reduce, one table an instruction set.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa/select.hpp"

namespace tutti::cpu {

constexpr int kReduceLoopOps = 5;
constexpr int kReduceLoopDTypes = 10;

// Both kinds add to states: double for floating dtypes, int64 for the others. Strides count elements.
//
// rows: reduces `count` rows of `n` elements, row i into states[i].
using ReduceRows = void (*)(const void* in, std::int64_t count, std::int64_t row_stride, std::int64_t n,
                            std::int64_t stride, void* states);
// columns: reduces `rows` rows of `n` elements over the rows, column c into states[c].
using ReduceColumns = void (*)(const void* in, std::int64_t rows, std::int64_t row_stride, std::int64_t n,
                               std::int64_t stride, void* states);
// Position of the greatest or smallest element of each column of a block of rows; states hold the best values
// so far (double or int64), positions where they stand; row 0 of the block stands at `first`.
using ArgColumns = void (*)(const void* in, std::int64_t rows, std::int64_t row_stride, std::int64_t n,
                            std::int64_t stride, std::int64_t first, void* states, std::int64_t* positions);
// First position of the value *state in a row, NaN equal to NaN; n if it is not there.
using FindValue = std::int64_t (*)(const void* in, std::int64_t n, std::int64_t stride, const void* state);

enum { kLoopSum, kLoopAmax, kLoopAmin, kLoopProd, kLoopSumSquares };

struct ReduceLoops {
  ReduceRows rows[kReduceLoopOps][kReduceLoopDTypes];
  ReduceColumns columns[kReduceLoopOps][kReduceLoopDTypes];
};
struct ArgReduceLoops {
  ArgColumns columns[2][kReduceLoopDTypes];  // [smallest]
  FindValue find[kReduceLoopDTypes];
};

TUTTI_ISA_TABLE(ReduceLoops, kReduceLoops, reduce_loops)
TUTTI_ISA_TABLE(ArgReduceLoops, kArgReduceLoops, arg_reduce_loops)

}  // namespace tutti::cpu
