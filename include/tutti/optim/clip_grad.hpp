// SPDX-License-Identifier: Apache-2.0
/// \file
/// Clipping of gradients by their norm [Pascanu et al. 2013].
#pragma once

#include <span>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::optim {

/// Options of clip_grad_norm_.
struct ClipGradNormOptions {
  double norm_type = 2;  ///< p of the p-norm; infinity: the greatest magnitude.
  /// Throw ValueError, before any gradient is changed, if the norm is infinite or NaN. Otherwise an infinite norm makes finite
  /// gradients 0 and infinite ones NaN, and a NaN makes all NaN.
  bool error_if_nonfinite = false;
};

/// Scales the gradients of `parameters` in place so that the norm of all of them, taken as one vector, is at most `max_norm`:
/// by min(1, max_norm / (norm + 1e-6)). Parameters without a gradient don't count.
///
/// Returns the norm before clipping, 0 if there is no gradient. It is computed in float32 (sums in float64; gradients of
/// float64 in float64), so float16 gradients don't overflow it. ValueError if max_norm is negative or NaN, or norm_type is not
/// above 0.
TUTTI_API double clip_grad_norm_(std::span<const Tensor> parameters, double max_norm,
                                 const ClipGradNormOptions& options = {});

}  // namespace tutti::optim

namespace tutti::nn {
using optim::clip_grad_norm_;
using optim::ClipGradNormOptions;
}  // namespace tutti::nn
