// SPDX-License-Identifier: Apache-2.0
// The inner loops of the softmax family, one table an instruction set. Arrays of four functions are indexed
// by dtype: f64, f32, f16, bf16. Strides count elements; the elements of a row, or the columns of a strip,
// are contiguous.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa/select.hpp"

namespace tutti::cpu {

constexpr int kFloatingDTypes = 4;

struct SoftmaxRows {
  const void* in;    // backward: the forward's result
  const void* grad;  // backward only
  void* out;
  std::int64_t in_stride, grad_stride, out_stride;  // from row to row
  std::int64_t rows, columns;
  bool log;
};

// row: normalises each row. column: normalises each column.
using SoftmaxFunction = void (*)(const SoftmaxRows& call);
struct SoftmaxLoops {
  SoftmaxFunction forward_row[kFloatingDTypes];
  SoftmaxFunction forward_column[kFloatingDTypes];
  SoftmaxFunction backward_row[kFloatingDTypes];
  SoftmaxFunction backward_column[kFloatingDTypes];
};

// m = greatest logit, log of the sum of exp(x - m) and, if wanted, the sum of w * (x - m) (w = 1 without
// weights).
struct CrossEntropyRow {
  double greatest, log_sum, weighted_sum;
};
struct CrossEntropyGrad {
  double log_sum_exp;
  double probability_scale;  // grad[j] = exp(x[j] - log_sum_exp) * probability_scale
  double smoothing_scale;    //           - w[j] * smoothing_scale
  double target_scale;       //           - (j == target) * target_scale
  std::int64_t target;
};
// Weights are of the accumulator's type (float, double) and contiguous, or null.
struct CrossEntropyLoops {
  CrossEntropyRow (*forward[kFloatingDTypes])(const void* logits, const void* weights, std::int64_t n,
                                              bool smoothing);
  void (*backward[kFloatingDTypes])(const void* logits, const void* weights, void* grad, std::int64_t n,
                                    const CrossEntropyGrad& row);
};

TUTTI_ISA_TABLE(SoftmaxLoops, kSoftmaxLoops, softmax_loops)
TUTTI_ISA_TABLE(CrossEntropyLoops, kCrossEntropyLoops, cross_entropy_loops)

}  // namespace tutti::cpu
