// SPDX-License-Identifier: Apache-2.0
/// \file
/// Stochastic gradient descent with momentum.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "tutti/core/export.hpp"
#include "tutti/optim/optimizer.hpp"

namespace tutti::optim {

/// Options of Sgd; names, meaning and defaults as in PyTorch.
struct SgdOptions {
  double lr = 1e-3;         ///< Learning rate, at least 0.
  double momentum = 0;      ///< Share of the old velocity in the new one, at least 0; 0: no velocity is kept.
  double dampening = 0;     ///< Share of the gradient that the velocity leaves out.
  double weight_decay = 0;  ///< Added to the gradient (L2 penalty), at least 0.
  bool nesterov = false;    ///< Needs momentum above 0 and no dampening.
  bool maximize = false;    ///< Go up the gradient instead of down.
};
/// ValueError naming the option that is outside its domain.
TUTTI_API void validate(const SgdOptions& options);

/// With g the gradient (negated by maximize) plus weight_decay * p:
///
///     b <- momentum * b + (1 - dampening) * g        (b = g in a parameter's first step)
///     p <- p - lr * b                                (nesterov: lr * (g + momentum * b); without momentum: lr * g)
///
/// The learning rate multiplies the velocity, as in PyTorch and unlike [Sutskever et al. 2013].
class TUTTI_API Sgd final : public OptimizerWith<SgdOptions> {
 public:
  /// One group. ValueError for options or parameters that are not valid; see Optimizer.
  explicit Sgd(std::vector<Tensor> parameters, const SgdOptions& options = {});
  /// Several groups.
  explicit Sgd(std::vector<Group> groups);
  const char* type_name() const noexcept override { return "SGD"; }

 private:
  double get_lr(std::size_t group) const override;
  void put_lr(std::size_t group, double lr) override;
  double get_momentum(std::size_t group) const override;
  void put_momentum(std::size_t group, double momentum) override;
  unsigned states_needed(std::size_t group) const override;
  bool counts_steps() const noexcept override { return false; }
  void update(std::size_t group, const detail::ParameterList& list) override;
  void save_options(std::size_t group, StateDict& state) const override;
  void load_options(std::span<const StateDict> groups) override;
};

}  // namespace tutti::optim
