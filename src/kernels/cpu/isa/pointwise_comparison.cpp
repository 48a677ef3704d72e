// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/isa/pointwise_loops.hpp"

namespace tutti::cpu::TUTTI_ISA {

extern const ComparisonTable kComparisons;
constexpr ComparisonTable kComparisons = table_of(functors::Comparisons{});

}  // namespace tutti::cpu::TUTTI_ISA
