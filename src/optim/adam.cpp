// SPDX-License-Identifier: Apache-2.0
#include "tutti/optim/adam.hpp"

#include <type_traits>
#include <utility>

#include "backend/registry.hpp"
#include "optim/options.hpp"
#include "optim/parameter_list.hpp"

namespace tutti::optim {

namespace {

template <class Options>
constexpr const char* kName = std::is_same_v<Options, AdamOptions> ? "Adam" : "AdamW";

template <class O>
constexpr detail::RealOption<O> kReals[] = {{"lr", &O::lr},
                                            {"beta1", &O::beta1},
                                            {"beta2", &O::beta2},
                                            {"eps", &O::eps},
                                            {"weight_decay", &O::weight_decay}};
template <class O>
constexpr detail::BoolOption<O> kBools[] = {{"amsgrad", &O::amsgrad}, {"maximize", &O::maximize}};

template <class Options>
void validate_adam(const Options& options) {
  constexpr const char* name = kName<Options>;
  detail::check_not_negative(name, "lr", options.lr);
  detail::check_in_unit_interval(name, "beta1", options.beta1);
  detail::check_in_unit_interval(name, "beta2", options.beta2);
  detail::check_not_negative(name, "eps", options.eps);
  detail::check_not_negative(name, "weight_decay", options.weight_decay);
}

template <class Options>
std::vector<ParameterGroup<Options>> one_group(std::vector<Tensor> parameters, const Options& options) {
  std::vector<ParameterGroup<Options>> groups;
  groups.push_back({std::move(parameters), options});
  return groups;
}

}  // namespace

void validate(const AdamOptions& options) { validate_adam(options); }
void validate(const AdamWOptions& options) { validate_adam(options); }

namespace detail {

template <class Options>
AdamBase<Options>::AdamBase(std::vector<ParameterGroup<Options>> groups)
    : OptimizerWith<Options>({"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {
  TUTTI_CHECK(!groups.empty(), ValueError, kName<Options>, ": the list of parameter groups is empty");
  for (ParameterGroup<Options>& group : groups) this->add_group(std::move(group));
}

template <class Options>
double AdamBase<Options>::get_lr(std::size_t group) const {
  return this->options_[group].lr;
}
template <class Options>
double AdamBase<Options>::get_momentum(std::size_t group) const {
  return this->options_[group].beta1;
}

template <class Options>
void AdamBase<Options>::put_lr(std::size_t group, double lr) {
  check_not_negative(kName<Options>, "lr", lr);
  this->options_[group].lr = lr;
}

template <class Options>
void AdamBase<Options>::put_momentum(std::size_t group, double momentum) {
  check_in_unit_interval(kName<Options>, "beta1", momentum);
  this->options_[group].beta1 = momentum;
}

template <class Options>
unsigned AdamBase<Options>::states_needed(std::size_t group) const {
  return this->options_[group].amsgrad ? 7U : 3U;
}

template <class Options>
void AdamBase<Options>::update(std::size_t group, const ParameterList& list) {
  const Options& options = this->options_[group];
  const tutti_adam call{.stream = list.stream(),
                        .list = list.arrays(),
                        .lr = options.lr,
                        .beta1 = options.beta1,
                        .beta2 = options.beta2,
                        .eps = options.eps,
                        .weight_decay = options.weight_decay,
                        .step = list.step,
                        .decoupled = std::is_same_v<Options, AdamWOptions> ? 1 : 0,
                        .amsgrad = options.amsgrad ? 1 : 0,
                        .maximize = options.maximize ? 1 : 0};
  backend::check(list.backend(), list.backend().kernels.adam(&call), kName<Options>);
}

template <class Options>
void AdamBase<Options>::save_options(std::size_t group, StateDict& state) const {
  save_fields<Options>(kReals<Options>, kBools<Options>, this->options_[group], state);
}

template <class Options>
void AdamBase<Options>::load_options(std::span<const StateDict> groups) {
  std::vector<Options> loaded;
  for (const StateDict& group : groups)
    loaded.push_back(
        load_fields<Options>(kReals<Options>, kBools<Options>, kName<Options>, loaded.size(), group));
  this->options_ = std::move(loaded);
}

template class AdamBase<AdamOptions>;
template class AdamBase<AdamWOptions>;

}  // namespace detail

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options)
    : AdamBase(one_group(std::move(parameters), options)) {}
Adam::Adam(std::vector<Group> groups) : AdamBase(std::move(groups)) {}

AdamW::AdamW(std::vector<Tensor> parameters, const AdamWOptions& options)
    : AdamBase(one_group(std::move(parameters), options)) {}
AdamW::AdamW(std::vector<Group> groups) : AdamBase(std::move(groups)) {}

}  // namespace tutti::optim
