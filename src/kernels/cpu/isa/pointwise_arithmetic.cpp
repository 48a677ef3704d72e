// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/isa/pointwise_loops.hpp"

namespace tutti::cpu::TUTTI_ISA {

extern const ArithmeticTable kArithmetic;
constexpr ArithmeticTable kArithmetic = table_of(functors::Arithmetic{});

}  // namespace tutti::cpu::TUTTI_ISA
