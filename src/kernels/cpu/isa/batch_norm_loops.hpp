// SPDX-License-Identifier: Apache-2.0
// The inner loops of batch norm, one table an instruction set. Arrays of four functions are indexed by the
// dtype of x: f64, f32, f16, bf16. "Run": contiguous elements of one channel. "Rows": rows of contiguous
// channels.
#pragma once

#include <cstdint>

#include "kernels/cpu/isa/select.hpp"

namespace tutti::cpu {

// Elements seen, their mean and the sum of squared deviations from it.
struct Moments {
  double count = 0.0, mean = 0.0, squares = 0.0;

  // [Chan, Golub, LeVeque 1983]
  void merge(const Moments& other) {
    if (other.count == 0.0) return;
    const double total = count + other.count;
    const double delta = other.mean - mean;
    mean += delta * (other.count / total);
    squares += other.squares + delta * delta * (count * other.count / total);
    count = total;
  }
};

// y = (x - mean) * scale + shift, or dx = (x - mean) * scale + shift + dy * grad_scale. Of the loops' own
// type (float or double): one value each for a run, one for each channel for rows.
struct ChannelAffine {
  const void* mean;
  const void* scale;
  const void* shift;
  const void* grad_scale;  // gradient only
};

struct BatchNormRows {
  const void* x;
  const void* grad;  // backward only
  void* out;
  std::int64_t rows, channels;
  std::int64_t x_stride, grad_stride, out_stride;  // from row to row
};

struct BatchNormLoops {
  static constexpr int kDTypes = 4;
  // moments (of the run; of channel c in means[c], squares[c], over `rows` rows)
  Moments (*run_moments[kDTypes])(const void* x, std::int64_t n);
  void (*row_moments[kDTypes])(const BatchNormRows& call, double* means, double* squares);
  // y
  void (*run_normalise[kDTypes])(const void* x, void* y, std::int64_t n, const ChannelAffine& affine);
  void (*row_normalise[kDTypes])(const BatchNormRows& call, const ChannelAffine& affine);
  // adds sum(dy) and sum(dy * (x - mean)) to sums and dots
  void (*run_grad_sums[kDTypes])(const void* x, const void* grad, std::int64_t n, const void* mean,
                                 double* sums, double* dots);
  void (*row_grad_sums[kDTypes])(const BatchNormRows& call, const void* mean, double* sums, double* dots);
  // dx
  void (*run_grad[kDTypes])(const void* x, const void* grad, void* out, std::int64_t n,
                            const ChannelAffine& affine);
  void (*row_grad[kDTypes])(const BatchNormRows& call, const ChannelAffine& affine);
};

TUTTI_ISA_TABLE(BatchNormLoops, kBatchNormLoops, batch_norm_loops)

}  // namespace tutti::cpu
