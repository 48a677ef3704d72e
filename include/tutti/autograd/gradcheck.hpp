// SPDX-License-Identifier: Apache-2.0
/// \file
/// Compares a backward with central differences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::autograd {

/// Options of gradcheck.
struct GradcheckOptions {
  double eps = 1e-6;   ///< Half the distance of the two points of the difference.
  double atol = 1e-7;  ///< Allowed: |analytic - numeric| <= atol + rtol * |numeric|.
  double rtol = 1e-5;
};

/// The largest deviation that gradcheck saw, and where.
struct GradcheckResult {
  double deviation = 0;      ///< |analytic - numeric|.
  std::size_t input = 0;     ///< Index into `inputs`.
  std::int64_t element = 0;  ///< Row-major index into that input.
  double analytic = 0;
  double numeric = 0;
};

/// Checks the gradients of f at `inputs` (float64, on the CPU; those that require gradients are checked)
/// against central differences of the outputs' sum under fixed random weights. f must be deterministic and
/// may return tensors of any sizes. Throws AutogradError that names the worst element if one is off by more
/// than the options allow, DTypeError for another dtype.
TUTTI_API GradcheckResult gradcheck(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
                                    std::span<const Tensor> inputs, GradcheckOptions options = {});
/// The same for one output.
TUTTI_API GradcheckResult gradcheck(const std::function<Tensor(std::span<const Tensor>)>& f,
                                    std::span<const Tensor> inputs, GradcheckOptions options = {});

}  // namespace tutti::autograd
