// SPDX-License-Identifier: Apache-2.0
/// \file
/// Batch normalisation and dropout.
#pragma once

#include "tutti/core/export.hpp"
#include "tutti/core/random.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

/// Options of batch_norm. In training the batch's statistics normalise and running = (1 - momentum) * running +
/// momentum * batch (the variance unbiased); otherwise the running statistics normalise.
struct BatchNormFunctionOptions {
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;
};
/// (x - mean) / sqrt(var + eps) * weight + bias over all dims of x [N, C, ...] but the second [Ioffe and Szegedy 2015].
/// weight, bias, running_mean, running_var: [C] or undefined. Without running statistics the batch's are used.
/// ShapeError if training sees only one value per channel; ValueError unless eps is finite and at least 0, momentum in [0, 1].
TUTTI_API Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                            const Tensor& weight = {}, const Tensor& bias = {},
                            const BatchNormFunctionOptions& options = {});

/// In training zeroes each element with probability p and scales the others by 1 / (1 - p) [Srivastava et al. 2014];
/// otherwise returns x. The mask is a function of the generator's state and the element's index. ValueError unless 0 <= p <= 1.
TUTTI_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true,
                         Generator* generator = nullptr);

}  // namespace tutti
