// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/isa/pointwise_loops.hpp"

namespace tutti::cpu::TUTTI_ISA {

extern const ActivationTable kActivations;
constexpr ActivationTable kActivations = table_of(functors::Activations{});

}  // namespace tutti::cpu::TUTTI_ISA
