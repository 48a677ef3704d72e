// SPDX-License-Identifier: Apache-2.0
/// \file
/// Joining tensors and selecting rows.
#pragma once

#include <span>
#include <vector>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti {

/// Joins along an existing dim; the other sizes must be equal; dtypes promote. Empty 1-dim tensors are skipped, as in PyTorch.
TUTTI_API Tensor cat(const std::vector<Tensor>& tensors, int dim = 0);
/// Joins along a new dim; all sizes must be equal.
TUTTI_API Tensor stack(const std::vector<Tensor>& tensors, int dim = 0);
/// The slices of x along dim that `indices` (int64 or int32, [K]) names, in that order. IndexError names an index out of range.
TUTTI_API Tensor index_select(const Tensor& x, int dim, const Tensor& indices);

}  // namespace tutti
