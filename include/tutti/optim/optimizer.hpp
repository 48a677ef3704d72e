// SPDX-License-Identifier: Apache-2.0
/// \file
/// Optimizer: what SGD, Adam and AdamW have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tutti/core/export.hpp"
#include "tutti/core/hidden.hpp"
#include "tutti/tensor/state_dict.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::optim {

/// Parameters that are updated with options of their own: `optim::Sgd::Group{body, {.lr = 0.1}}`.
template <class Options>
struct ParameterGroup {
  std::vector<Tensor> parameters;  ///< Leaves, each in one group only.
  Options options{};               ///< Of this group.
};

namespace detail {
struct OptimizerImpl;
struct ParameterList;
}  // namespace detail

/// Updates parameters from their gradients.
///
/// - A parameter without a gradient is left alone, its state and number of steps too.
/// - All parameters of a group, dtype and device are updated in one pass. A warm step allocates nothing.
/// - Parameters and gradients may have any layout; equal dense ones (channels-last) are updated in the order of memory.
/// - State is made when a parameter has its first gradient.
/// - An update counts as an in-place write (Tensor::version).
class TUTTI_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update. DTypeError, DeviceError or ShapeError, before anything is changed, for a gradient that does not fit its
  /// parameter.
  void step();
  /// Forgets all gradients; with set_to_none false it fills them with zeros instead.
  void zero_grad(bool set_to_none = true);

  /// Number of parameter groups, at least 1. A group's number beyond that is an IndexError wherever one is taken.
  std::size_t group_count() const noexcept;
  /// The parameters of a group.
  std::span<const Tensor> parameters(std::size_t group) const;

  /// Learning rate of a group.
  double lr(std::size_t group = 0) const;
  /// Sets it. ValueError if it is negative or not finite.
  void set_lr(std::size_t group, double lr);
  /// Sets that of all groups.
  void set_lr(double lr);
  /// What a one-cycle schedule moves against the learning rate: SGD's momentum, Adam's beta1.
  double momentum(std::size_t group = 0) const;
  /// Sets it. ValueError outside its range.
  void set_momentum(std::size_t group, double momentum);

  /// The learning rate that schedulers start from; none until a scheduler is made.
  std::optional<double> initial_lr(std::size_t group = 0) const;
  /// Sets it; schedulers do. ValueError if it is negative or not finite.
  void set_initial_lr(std::size_t group, double lr);

  /// "type", each group's options ("param_groups.0.lr") and each parameter's state ("state.0.exp_avg"; parameters are
  /// numbered through all groups). Tensors share memory with the optimizer: clone them to keep a moment.
  StateDict state_dict() const;
  /// Takes over options and state; tensors are copied and converted to their parameters' dtype. If the dict is that of another
  /// optimizer, or groups, parameters or shapes differ, it throws ValueError or ShapeError that names the entry, and changes
  /// nothing.
  void load_state_dict(const StateDict& state);

  /// "SGD", "Adam", "AdamW".
  virtual const char* type_name() const noexcept = 0;

 protected:
  /// Names of the state's tensors in the order in which kernels take them: {"exp_avg", "exp_avg_sq"}.
  explicit Optimizer(std::initializer_list<const char*> state_names);

  /// Adds a group whose options the caller keeps under the same number. ValueError for an empty list, an undefined tensor,
  /// one that is listed twice or in another group, or the result of a recorded operation; ShapeError for one whose elements
  /// share memory with each other (an expanded view).
  void add_parameters(std::vector<Tensor> parameters);
  void check_group(std::size_t group) const;

  // What differs between optimizers; groups are checked.
  virtual double get_lr(std::size_t group) const = 0;
  virtual void put_lr(std::size_t group, double lr) = 0;
  virtual double get_momentum(std::size_t group) const = 0;
  virtual void put_momentum(std::size_t group, double momentum) = 0;
  /// Which of the state's tensors an update of the group needs; bit k is the k-th.
  virtual unsigned states_needed(std::size_t group) const = 0;
  /// True if parameters may share a pass only if they have made equally many steps (bias correction); else only the first
  /// step is told from others.
  virtual bool counts_steps() const noexcept = 0;
  /// Updates arrays of one dtype and device.
  virtual void update(std::size_t group, const detail::ParameterList& list) = 0;
  /// Options to and from entries named without a prefix ("lr").
  virtual void save_options(std::size_t group, StateDict& state) const = 0;
  /// Reads and validates the options of all groups, one dict each, before it takes over any.
  virtual void load_options(std::span<const StateDict> groups) = 0;

 private:
  tutti::detail::Hidden<detail::OptimizerImpl> impl_;
};

/// An optimizer whose groups have options of one type.
template <class OptionsType>
class OptimizerWith : public Optimizer {
 public:
  using Options = OptionsType;
  using Group = ParameterGroup<Options>;

  /// Options of a group.
  const Options& options(std::size_t group = 0) const {
    check_group(group);
    return options_[group];
  }
  /// Replaces them. ValueError naming the option if one is outside its domain.
  void set_options(std::size_t group, const Options& options) {
    check_group(group);
    validate(options);
    options_[group] = options;
  }
  /// Adds a group. ValueError as at construction.
  void add_group(Group group) {
    validate(group.options);
    add_parameters(std::move(group.parameters));
    options_.push_back(group.options);
  }

 protected:
  using Optimizer::Optimizer;

  std::vector<Options> options_;  // one for each group
};

}  // namespace tutti::optim
