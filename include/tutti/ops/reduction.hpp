// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reductions over any dims; no dims given means all of them. f16 and bf16 accumulate in float32. The order of the sum
/// depends on the shape alone, so the result is the same for any number of threads.
#pragma once

#include <utility>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

/// Integers and bool sum to int64. An empty sum is 0.
TUTTI_API Tensor sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Floating dtypes only (DTypeError otherwise). The mean of nothing is NaN.
TUTTI_API Tensor mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Greatest element over dims; NaN wins; ties share the gradient equally, as in PyTorch. ShapeError if one of the dims is empty.
TUTTI_API Tensor amax(const Tensor& x, const Dims& dims = {}, bool keepdim = false);
/// Greatest element; NaN wins; ties share the gradient equally, as in PyTorch. ShapeError for an empty tensor.
TUTTI_API Tensor max(const Tensor& x);
/// Greatest element along dim and where it stands: (values, int64 indices); the first of equal ones.
TUTTI_API std::pair<Tensor, Tensor> max(const Tensor& x, int dim, bool keepdim = false);
/// Index of the greatest element of the flattened tensor, or along dim; int64; not differentiable.
TUTTI_API Tensor argmax(const Tensor& x);
TUTTI_API Tensor argmax(const Tensor& x, int dim, bool keepdim = false);

}  // namespace tutti
