// SPDX-License-Identifier: Apache-2.0
#include "tutti/optim/sgd.hpp"

#include <utility>

#include "backend/registry.hpp"
#include "optim/options.hpp"
#include "optim/parameter_list.hpp"

namespace tutti::optim {

namespace {

constexpr detail::RealOption<SgdOptions> kReals[] = {{"lr", &SgdOptions::lr},
                                                     {"momentum", &SgdOptions::momentum},
                                                     {"dampening", &SgdOptions::dampening},
                                                     {"weight_decay", &SgdOptions::weight_decay}};
constexpr detail::BoolOption<SgdOptions> kBools[] = {{"nesterov", &SgdOptions::nesterov},
                                                     {"maximize", &SgdOptions::maximize}};

}  // namespace

void validate(const SgdOptions& options) {
  for (const auto& [name, member] : kReals) {
    if (member != &SgdOptions::dampening) detail::check_not_negative("SGD", name, options.*member);
  }
  TUTTI_CHECK(std::isfinite(options.dampening), ValueError, "SGD: dampening must be finite, given ",
              options.dampening);
  TUTTI_CHECK(!options.nesterov || (options.momentum > 0 && options.dampening == 0), ValueError,
              "SGD: nesterov needs a momentum above 0 and a dampening of 0, given momentum ",
              options.momentum, " and dampening ", options.dampening);
}

Sgd::Sgd(std::vector<Tensor> parameters, const SgdOptions& options) : OptimizerWith({"momentum_buffer"}) {
  add_group({std::move(parameters), options});
}

Sgd::Sgd(std::vector<Group> groups) : OptimizerWith({"momentum_buffer"}) {
  TUTTI_CHECK(!groups.empty(), ValueError, "SGD: the list of parameter groups is empty");
  for (Group& group : groups) add_group(std::move(group));
}

double Sgd::get_lr(std::size_t group) const { return options_[group].lr; }
double Sgd::get_momentum(std::size_t group) const { return options_[group].momentum; }

void Sgd::put_lr(std::size_t group, double lr) {
  detail::check_not_negative("SGD", "lr", lr);
  options_[group].lr = lr;
}

void Sgd::put_momentum(std::size_t group, double momentum) {
  SgdOptions changed = options_[group];
  changed.momentum = momentum;
  validate(changed);
  options_[group] = changed;
}

unsigned Sgd::states_needed(std::size_t group) const { return options_[group].momentum != 0 ? 1U : 0U; }

void Sgd::update(std::size_t group, const detail::ParameterList& list) {
  const SgdOptions& options = options_[group];
  const tutti_sgd call{.stream = list.stream(),
                       .list = list.arrays(),
                       .lr = options.lr,
                       .momentum = options.momentum,
                       .dampening = options.dampening,
                       .weight_decay = options.weight_decay,
                       .nesterov = options.nesterov ? 1 : 0,
                       .maximize = options.maximize ? 1 : 0,
                       .first_step = list.step == 1 ? 1 : 0};
  backend::check(list.backend(), list.backend().kernels.sgd(&call), "SGD");
}

void Sgd::save_options(std::size_t group, StateDict& state) const {
  detail::save_fields<SgdOptions>(kReals, kBools, options_[group], state);
}

void Sgd::load_options(std::span<const StateDict> groups) {
  std::vector<SgdOptions> loaded;
  for (const StateDict& group : groups)
    loaded.push_back(detail::load_fields<SgdOptions>(kReals, kBools, "SGD", loaded.size(), group));
  options_ = std::move(loaded);
}

}  // namespace tutti::optim
