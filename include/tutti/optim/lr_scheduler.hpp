// SPDX-License-Identifier: Apache-2.0
/// \file
/// Schedulers of the learning rate, with PyTorch's numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tutti/core/export.hpp"
#include "tutti/optim/optimizer.hpp"
#include "tutti/tensor/state_dict.hpp"

namespace tutti::optim {

/// Sets an optimizer's learning rates. Construction sets the first one; call step() after each optimizer step, or each epoch.
///
/// Rates follow from the current ones (PyTorch's chainable form), so several schedulers may drive one optimizer. The optimizer
/// must outlive its schedulers.
class TUTTI_API LRScheduler {
 public:
  virtual ~LRScheduler();
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  /// Moves on by one step.
  void step();
  /// Learning rate of each group, as set last by this scheduler.
  const std::vector<double>& last_lr() const noexcept { return last_lr_; }
  /// Number of calls of step() so far (PyTorch's last_epoch).
  std::int64_t step_count() const noexcept { return step_count_; }

  /// "type", "last_epoch", "base_lrs.0", "last_lr.0", ...; the optimizer's rates are in its own dict.
  StateDict state_dict() const;
  /// Takes over a state. ValueError naming the entry if it is another scheduler's or the number of groups differs.
  void load_state_dict(const StateDict& state);

  /// "StepLR", ...
  virtual const char* type_name() const noexcept = 0;

 protected:
  /// Remembers the optimizer's initial rates.
  explicit LRScheduler(Optimizer& optimizer);
  /// To be called at the end of a derived class's constructor: sets the rates of step 0.
  void start();
  /// Rate of a group at step_count(), given the current one. May set the momentum.
  virtual double next_lr(std::size_t group) = 0;

  Optimizer& optimizer() noexcept { return *optimizer_; }
  double base_lr(std::size_t group) const { return base_lrs_[group]; }
  /// Changes the initial rate of a group, for a scheduler that has its own.
  void set_base_lr(std::size_t group, double lr);

 private:
  void apply();

  Optimizer* optimizer_;
  std::int64_t step_count_ = 0;
  std::vector<double> base_lrs_;
  std::vector<double> last_lr_;
};

/// Options of StepLR.
struct StepLROptions {
  std::int64_t step_size = 0;  ///< Steps between two changes of the rate, at least 1. Required.
  double gamma = 0.1;          ///< Factor of a change, at least 0.
};
/// Multiplies the rate by gamma every step_size steps.
class TUTTI_API StepLR final : public LRScheduler {
 public:
  /// ValueError if step_size is less than 1 or gamma is negative or not finite.
  StepLR(Optimizer& optimizer, const StepLROptions& options);
  const char* type_name() const noexcept override { return "StepLR"; }

 private:
  double next_lr(std::size_t group) override;
  StepLROptions options_;
};

/// Options of CosineAnnealingLR.
struct CosineAnnealingLROptions {
  std::int64_t t_max = 0;  ///< Steps from the initial rate down to eta_min. Required.
  double eta_min = 0;      ///< The lowest rate, at least 0.
};
/// eta_min + (base - eta_min) * (1 + cos(pi * t / t_max)) / 2 [Loshchilov & Hutter 2017], without restarts: after t_max the
/// rate goes up again.
class TUTTI_API CosineAnnealingLR final : public LRScheduler {
 public:
  /// ValueError if t_max is less than 1 or eta_min is negative or not finite.
  CosineAnnealingLR(Optimizer& optimizer, const CosineAnnealingLROptions& options);
  const char* type_name() const noexcept override { return "CosineAnnealingLR"; }

 private:
  double next_lr(std::size_t group) override;
  CosineAnnealingLROptions options_;
};

/// How OneCycleLR goes from one rate to the next.
enum class AnnealStrategy : std::uint8_t {
  kCosine,  ///< Along half a cosine: slow at both ends.
  kLinear,  ///< On a straight line.
};

/// Options of OneCycleLR; names, meaning and defaults as in PyTorch.
struct OneCycleLROptions {
  double max_lr = 0;                 ///< Of all groups. Required, unless max_lr_by_group is given.
  std::int64_t total_steps = 0;      ///< Or epochs and steps_per_epoch; one of the two is required.
  std::int64_t epochs = 0;           ///< With steps_per_epoch, in place of total_steps.
  std::int64_t steps_per_epoch = 0;  ///< total_steps is epochs * steps_per_epoch.
  double pct_start = 0.3;            ///< Part of the cycle in which the rate goes up, in [0, 1].
  AnnealStrategy anneal_strategy = AnnealStrategy::kCosine;  ///< Course of rate and momentum.
  bool cycle_momentum = true;                                ///< Momentum goes from max to base and back.
  double base_momentum = 0.85;                               ///< Momentum while the rate is greatest.
  double max_momentum = 0.95;                                ///< Momentum at both ends of the cycle.
  double div_factor = 25;                                    ///< First rate: max_lr / div_factor.
  double final_div_factor = 1e4;                             ///< Last rate: first rate / final_div_factor.
  bool three_phase = false;                                  ///< Down as fast as up, then to the last rate.
  std::vector<double> max_lr_by_group{};                     ///< One for each group, in place of max_lr.
};
/// The one-cycle schedule [Smith & Topin 2017]: step it after every batch, at most total_steps times.
class TUTTI_API OneCycleLR final : public LRScheduler {
 public:
  /// ValueError for options outside their domain. step() throws ValueError beyond total_steps.
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);
  const char* type_name() const noexcept override { return "OneCycleLR"; }
  /// Length of the cycle.
  std::int64_t total_steps() const noexcept { return total_steps_; }

 private:
  double next_lr(std::size_t group) override;
  double max_lr(std::size_t group) const;

  OneCycleLROptions options_;
  std::int64_t total_steps_;
};

}  // namespace tutti::optim
