// SPDX-License-Identifier: Apache-2.0
// Inner loops of reductions over ranks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::comm {

inline constexpr int kReduceDTypes = 10;
inline constexpr int kReduceOps = 5;

struct ReduceLoops {
  // Every outs[o][i] becomes ins[0][i] op ins[1][i] op ... in this order, divided by `divisor` for the mean. An output may
  // be an input, or lie apart from all; inputs are read before an output is written, block by block.
  using Reduce = void (*)(void* const* outs, int out_count, const void* const* ins, int in_count,
                          std::int64_t count, double divisor);
  // By dtype and ReduceOp; null where there is no such reduction (mean of integers and bool).
  Reduce reduce[kReduceDTypes][kReduceOps];
  // From f16 (0) and bf16 (1) to f32, without rounding in between.
  Reduce widen[2][kReduceOps];
  // done = stage and stage = next, as many bytes as each has, in one pass. Neither overlaps the stage.
  void (*exchange)(void* stage, void* done, std::size_t done_bytes, const void* next, std::size_t next_bytes);
};

}  // namespace tutti::comm

#if !defined(TUTTI_ISA)
#include "kernels/cpu/isa/select.hpp"
namespace tutti::comm {
using cpu::table_of_level;
TUTTI_ISA_TABLE(ReduceLoops, kReduceLoops, reduce_loops)
}  // namespace tutti::comm
#endif
