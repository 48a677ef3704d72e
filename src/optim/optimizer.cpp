// SPDX-License-Identifier: Apache-2.0
#include "tutti/optim/optimizer.hpp"

#include <algorithm>
#include <utility>

#include "optim/options.hpp"
#include "optim/parameter_list.hpp"
#include "tensor/raw.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/phase.hpp"
#include "tutti/core/trace.hpp"

namespace tutti::optim {

Optimizer::Optimizer(std::initializer_list<const char*> state_names) : impl_(new detail::OptimizerImpl) {
  impl_->state_names = state_names;
}

Optimizer::~Optimizer() = default;

void Optimizer::check_group(std::size_t group) const {
  TUTTI_CHECK(group < impl_->groups.size(), IndexError, "optimizer: there is no parameter group ", group,
              " of ", impl_->groups.size());
}

void Optimizer::add_parameters(std::vector<Tensor> parameters) {
  const std::size_t number = impl_->groups.size();
  TUTTI_CHECK(!parameters.empty(), ValueError, "optimizer: parameter group ", number, " is empty");
  std::vector<std::pair<const void*, std::pair<std::size_t, std::size_t>>>
      places;  // tensor, group, number in it
  const auto add_places = [&places](const std::vector<Tensor>& tensors, std::size_t group) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      TUTTI_CHECK(tensors[i].defined(), ValueError, "optimizer: parameter ", i, " of group ", group,
                  " is undefined");
      TUTTI_CHECK(tensors[i].is_leaf(), ValueError, "optimizer: parameter ", i, " of group ", group, " (",
                  tensors[i].dtype(), " ", tensors[i].sizes(), ") is the result of ",
                  tensors[i].grad_fn_name(), "; only leaves can be optimized");
      raw::check_writable(tensors[i], concat("optimizer: parameter ", i, " of group ", group));
      places.push_back({tensors[i].impl(), {group, i}});
    }
  };
  for (std::size_t group = 0; group < number; ++group) add_places(impl_->groups[group].parameters, group);
  add_places(parameters, number);
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i) {
    const auto& [first, second] = std::pair(places[i - 1].second, places[i].second);
    TUTTI_CHECK(places[i - 1].first != places[i].first, ValueError, "optimizer: parameter ", second.second,
                " of group ", second.first, " is parameter ", first.second, " of group ", first.first,
                " too");
  }
  detail::Group& group = impl_->groups.emplace_back();
  group.parameters = std::move(parameters);
  group.slots.reserve(group.parameters.size());
  for (const Tensor& parameter : group.parameters)
    group.slots.push_back({.parameter = parameter, .states = {}});
}

void Optimizer::step() {
  const phase::Scope scope(phase::Kind::kOptimizer);
  const trace::Range range("optimizer_step");
  detail::ListBuilder& lists = impl_->lists;
  lists.start();
  for (std::size_t g = 0; g < impl_->groups.size(); ++g) {
    const unsigned states = states_needed(g);
    for (detail::Slot& slot : impl_->groups[g].slots) {
      if (const Tensor gradient = slot.parameter.grad(); gradient.defined())
        lists.add(g, slot, gradient, states, counts_steps());
    }
  }
  for (std::size_t i = 0; i < lists.size(); ++i) update(lists[i].group, lists[i]);
  lists.finish();
}

void Optimizer::zero_grad(bool set_to_none) {
  for (detail::Group& group : impl_->groups) {
    for (Tensor& parameter : group.parameters) {
      if (set_to_none) {
        parameter.set_grad({});
      } else if (const Tensor gradient = parameter.grad(); gradient.defined()) {
        raw::fill(gradient, 0.0);
        raw::bump_version(gradient);
      }
    }
  }
}

std::size_t Optimizer::group_count() const noexcept { return impl_->groups.size(); }

std::span<const Tensor> Optimizer::parameters(std::size_t group) const {
  check_group(group);
  return impl_->groups[group].parameters;
}

double Optimizer::lr(std::size_t group) const {
  check_group(group);
  return get_lr(group);
}

void Optimizer::set_lr(std::size_t group, double lr) {
  check_group(group);
  put_lr(group, lr);
}

void Optimizer::set_lr(double lr) {
  for (std::size_t group = 0; group < group_count(); ++group) put_lr(group, lr);
}

double Optimizer::momentum(std::size_t group) const {
  check_group(group);
  return get_momentum(group);
}

void Optimizer::set_momentum(std::size_t group, double momentum) {
  check_group(group);
  put_momentum(group, momentum);
}

std::optional<double> Optimizer::initial_lr(std::size_t group) const {
  check_group(group);
  return impl_->groups[group].initial_lr;
}

void Optimizer::set_initial_lr(std::size_t group, double lr) {
  check_group(group);
  detail::check_not_negative(type_name(), "initial_lr", lr);
  impl_->groups[group].initial_lr = lr;
}

}  // namespace tutti::optim
