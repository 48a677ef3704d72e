// SPDX-License-Identifier: Apache-2.0
// Inner loops of the pointwise functors over contiguous arrays.
#pragma once

#include <cstdint>

#include "kernels/functors/list.hpp"

namespace tutti::cpu {

using PointwiseLoop = void (*)(void* out, const void* const* in, std::int64_t count, const double* params);

// The loops of one functor and dtype; null where it doesn't take the dtype. The last two are for functors of
// two floating inputs: one of them is a single element.
struct PointwiseLoops {
  PointwiseLoop contiguous;
  PointwiseLoop first_scalar;
  PointwiseLoop second_scalar;
};

// By dtype; those of f16 and bf16 are the loops of f32.
struct PointwiseRow {
  PointwiseLoops dtypes[10];
};

template <class List>
struct PointwiseTable {
  PointwiseRow functors[List::kSize];
};
using ArithmeticTable = PointwiseTable<functors::Arithmetic>;
using ActivationTable = PointwiseTable<functors::Activations>;
using ComparisonTable = PointwiseTable<functors::Comparisons>;

}  // namespace tutti::cpu

#if !defined(TUTTI_ISA)
#include "kernels/cpu/isa/select.hpp"
namespace tutti::cpu {
TUTTI_ISA_TABLE(ArithmeticTable, kArithmetic, arithmetic_loops)
TUTTI_ISA_TABLE(ActivationTable, kActivations, activation_loops)
TUTTI_ISA_TABLE(ComparisonTable, kComparisons, comparison_loops)
}  // namespace tutti::cpu
#endif
