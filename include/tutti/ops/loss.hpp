// SPDX-License-Identifier: Apache-2.0
/// \file
/// Softmax and losses.
#pragma once

#include <cstdint>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

/// exp(x) / sum exp(x) along dim, computed without overflow. x floating (DTypeError otherwise), any shape; the result has
/// its shape and dtype. A slice of minus infinities alone gives NaN, as in PyTorch. dx = y (g - sum g y). IndexError if there
/// is no such dim.
TUTTI_API Tensor softmax(const Tensor& x, int dim);
/// x - log sum exp(x) along dim: the logarithm of softmax, without rounding it first. x floating (DTypeError otherwise), any
/// shape; the result has its shape and dtype. dx = g - exp(y) sum g. IndexError if there is no such dim.
TUTTI_API Tensor log_softmax(const Tensor& x, int dim);

/// How a loss's rows become its result.
enum class Reduction : std::uint8_t {
  kNone,  ///< One loss a row.
  kMean,  ///< Their (weighted) mean, a 0-dim tensor; NaN of no rows.
  kSum,   ///< Their sum, a 0-dim tensor.
};

/// Options of cross_entropy.
struct CrossEntropyOptions {
  Tensor weight = {};                      ///< Class weights [C]; undefined: ones.
  std::int64_t ignore_index = -100;        ///< Rows with this target count for nothing.
  Reduction reduction = Reduction::kMean;  ///< kMean divides by the sum of the targets' weights.
  double label_smoothing = 0;              ///< [Szegedy et al. 2016]
};
/// -log softmax(logits)[target] of logits [N, C], [N, C, ...] or [C] (a row of its own) and int64 targets [N], [N, ...] or [];
/// one fused kernel each way. Or targets of the logits' shape and dtype, probabilities q of the classes: -sum_c w_c q_c log
/// softmax(logits)_c, whose kMean divides by N (and what follows C) and whose gradient reaches the targets too; ignore_index has no
/// meaning then.
/// Logits floating, of any strides; the loss of f16 and bf16 is computed in float32 and rounded once. d logits = w (softmax - q) g,
/// where q is the (smoothed) target. IndexError names row and value of a target outside [0, C) other than ignore_index;
/// ShapeError, DTypeError and DeviceError for operands that do not fit each other.
TUTTI_API Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                               const CrossEntropyOptions& options = {});

}  // namespace tutti
