// SPDX-License-Identifier: Apache-2.0
// The inner loop of index_add, one table an instruction set.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa/select.hpp"

namespace tutti::cpu {

// out[i * out_stride] += in[i * in_stride] for i < n; f16 and bf16 round each sum, bool is a logical or.
using AddRow = void (*)(void* out, std::int64_t out_stride, const void* in, std::int64_t in_stride,
                        std::int64_t n);

struct IndexLoops {
  AddRow add[10];  // by dtype
};

TUTTI_ISA_TABLE(IndexLoops, kIndexLoops, index_loops)

}  // namespace tutti::cpu
