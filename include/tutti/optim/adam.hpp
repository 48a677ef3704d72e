// SPDX-License-Identifier: Apache-2.0
/// \file
/// Adam [Kingma & Ba 2015] and AdamW [Loshchilov & Hutter 2019].
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tutti/core/export.hpp"
#include "tutti/optim/optimizer.hpp"

namespace tutti::optim {

/// Options of Adam; meaning and defaults as in PyTorch.
struct TUTTI_API AdamOptions {
  double lr = 1e-3;         ///< Learning rate, at least 0.
  double beta1 = 0.9;       ///< Share of the old mean of gradients in the new one, in [0, 1).
  double beta2 = 0.999;     ///< The same for the mean of squared gradients.
  double eps = 1e-8;        ///< Added after the bias-corrected square root.
  double weight_decay = 0;  ///< Added to the gradient (L2 penalty).
  bool amsgrad = false;     ///< Divide by the greatest mean of squares so far [Reddi et al. 2018].
  bool maximize = false;    ///< Go up the gradient instead of down.
};
/// Options of AdamW; meaning and defaults as in PyTorch.
struct TUTTI_API AdamWOptions {
  double lr = 1e-3;            ///< Learning rate, at least 0.
  double beta1 = 0.9;          ///< Share of the old mean of gradients in the new one, in [0, 1).
  double beta2 = 0.999;        ///< The same for the mean of squared gradients.
  double eps = 1e-8;           ///< Added after the bias-corrected square root.
  double weight_decay = 1e-2;  ///< Parameters shrink by lr * weight_decay a step.
  bool amsgrad = false;        ///< Divide by the greatest mean of squares so far [Reddi et al. 2018].
  bool maximize = false;       ///< Go up the gradient instead of down.
};
/// ValueError naming the option that is outside its domain.
TUTTI_API void validate(const AdamOptions& options);
/// The same.
TUTTI_API void validate(const AdamWOptions& options);

namespace detail {
/// Adam and AdamW; they differ in their options' type, defaults and in where the weight decay goes.
template <class Options>
class TUTTI_API AdamBase : public OptimizerWith<Options> {
 protected:
  explicit AdamBase(std::vector<ParameterGroup<Options>> groups);

 private:
  double get_lr(std::size_t group) const final;
  void put_lr(std::size_t group, double lr) final;
  double get_momentum(std::size_t group) const final;
  void put_momentum(std::size_t group, double momentum) final;
  unsigned states_needed(std::size_t group) const final;
  bool counts_steps() const noexcept final { return true; }
  void update(std::size_t group, const ParameterList& list) final;
  void save_options(std::size_t group, StateDict& state) const final;
  void load_options(std::span<const StateDict> groups) final;
};
extern template class AdamBase<AdamOptions>;
extern template class AdamBase<AdamWOptions>;
}  // namespace detail

/// With g the gradient (negated by maximize) plus weight_decay * p, in step t = 1, 2, ...:
///
///     m <- beta1 * m + (1 - beta1) * g
///     v <- beta2 * v + (1 - beta2) * g^2             (amsgrad: the greatest v so far is used below)
///     p <- p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
///
/// t counts the steps in which the parameter had a gradient.
class TUTTI_API Adam final : public detail::AdamBase<AdamOptions> {
 public:
  /// One group. ValueError for options or parameters that are not valid; see Optimizer.
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});
  /// Several groups.
  explicit Adam(std::vector<Group> groups);
  const char* type_name() const noexcept override { return "Adam"; }
};

/// Adam without weight decay in the gradient; instead p <- p * (1 - lr * weight_decay) comes first.
class TUTTI_API AdamW final : public detail::AdamBase<AdamWOptions> {
 public:
  /// One group. ValueError for options or parameters that are not valid; see Optimizer.
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& options = {});
  /// Several groups.
  explicit AdamW(std::vector<Group> groups);
  const char* type_name() const noexcept override { return "AdamW"; }
};

}  // namespace tutti::optim
