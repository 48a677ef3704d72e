// SPDX-License-Identifier: Apache-2.0
// Inner loops of the optimizers over one array.
#pragma once

#include <cstdint>

namespace tutti::cpu {

struct OptimizerArrays {
  void* param;
  const void* grad;
  void* state1;
  void* state2;
  void* state3;
};

struct SgdConstants {
  double lr, momentum, gradient_factor /* 1 - dampening */, weight_decay, sign /* -1: maximize */;
  bool has_momentum, first_step, nesterov;
};

struct AdamConstants {
  double beta1, beta2, eps, sign;
  double step_size;          // lr / (1 - beta1^t)
  double inverse_sqrt_bias;  // 1 / sqrt(1 - beta2^t)
  double weight_decay;       // added to the gradient
  double keep;               // 1 - lr * decoupled weight decay
  bool amsgrad;
};

struct OptimizerLoops {
  // [0]: f32, [1]: f64
  void (*sgd[2])(const OptimizerArrays& arrays, std::int64_t count, const SgdConstants& constants);
  void (*adam[2])(const OptimizerArrays& arrays, std::int64_t count, const AdamConstants& constants);
  double (*sum_of_squares[2])(const void* x, std::int64_t count);
  void (*scale[2])(void* x, std::int64_t count, double factor);
};

}  // namespace tutti::cpu

#if !defined(TUTTI_ISA)
#include "kernels/cpu/isa/select.hpp"
namespace tutti::cpu {
TUTTI_ISA_TABLE(OptimizerLoops, kOptimizerLoops, optimizer_loops)
}
#endif
