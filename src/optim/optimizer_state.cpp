// SPDX-License-Identifier: Apache-2.0
// An optimizer's state_dict: "type", "param_groups.G.OPTION", "param_groups.G.parameter_count", "state.N.step",
// "state.N.TENSOR".
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "optim/options.hpp"
#include "optim/parameter_list.hpp"
#include "tensor/raw.hpp"
#include "tutti/core/error.hpp"
#include "tutti/optim/optimizer.hpp"

namespace tutti::optim {

namespace {

std::string group_prefix(std::size_t group) { return concat("param_groups.", group, "."); }

struct Loaded {
  std::array<Tensor, detail::kMaxStates> states;
  std::int64_t steps = 0;
};

// Reads the state of one parameter and counts the entries it found.
class StateReader {
 public:
  StateReader(const StateDict& dict, std::string where, const std::vector<const char*>& names,
              bool counts_steps)
      : dict_(dict), where_(std::move(where)), names_(names), counts_steps_(counts_steps) {}

  Loaded read(std::size_t number, const Tensor& parameter) {
    Loaded loaded;
    const std::string prefix = concat("state.", number, ".");
    const std::string step_name = prefix + "step";
    if (dict_.contains(step_name)) {
      loaded.steps = dict_.integer(step_name);
      constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;  // doubles count them exactly
      TUTTI_CHECK(loaded.steps >= 0 && loaded.steps <= kMostSteps, ValueError, where_, ": ", step_name,
                  " must be between 0 and ", kMostSteps, ", given ", loaded.steps);
      ++found_;
    }
    for (std::size_t k = 0; k < names_.size(); ++k) {
      const std::string name = prefix + names_[k];
      if (!dict_.contains(name)) continue;
      const Tensor& saved = dict_.tensor(name);
      TUTTI_CHECK(saved.defined(), ValueError, where_, ": ", name, " is undefined");
      TUTTI_CHECK(saved.sizes() == parameter.sizes(), ShapeError, where_, ": ", name, " has shape ",
                  saved.sizes(), ", its parameter ", parameter.sizes());
      loaded.states[k] = empty_strided(parameter.sizes(), raw::dense_strides(parameter), parameter.dtype(),
                                       parameter.device());
      raw::copy(loaded.states[k], saved);
      ++found_;
    }
    if (counts_steps_) check_complete(loaded, prefix);
    return loaded;
  }
  std::size_t found() const noexcept { return found_; }

 private:
  // A parameter has made no step yet and has no state, or it has both averages.
  void check_complete(const Loaded& loaded, const std::string& prefix) const {
    for (std::size_t k = 0; k < 2; ++k) {
      TUTTI_CHECK(loaded.states[k].defined() == (loaded.steps > 0), ValueError, where_, ": ", prefix,
                  "step is ", loaded.steps, ", but ", prefix, names_[k],
                  loaded.steps > 0 ? " is missing" : " is there");
    }
  }

  const StateDict& dict_;
  std::string where_;
  const std::vector<const char*>& names_;
  bool counts_steps_;
  std::size_t found_ = 0;
};

}  // namespace

StateDict Optimizer::state_dict() const {
  StateDict dict;
  dict.set("type", std::string(type_name()));
  std::size_t number = 0;
  for (std::size_t g = 0; g < impl_->groups.size(); ++g) {
    const detail::Group& group = impl_->groups[g];
    StateDict options;
    save_options(g, options);
    if (group.initial_lr) options.set("initial_lr", *group.initial_lr);
    options.set("parameter_count", static_cast<std::int64_t>(group.slots.size()));
    dict.merge(group_prefix(g), options);
    for (const detail::Slot& slot : group.slots) {
      const std::string prefix = concat("state.", number++, ".");
      if (counts_steps() && slot.steps > 0) dict.set(prefix + "step", slot.steps);
      if (slot.is_fresh) continue;
      for (std::size_t k = 0; k < impl_->state_names.size(); ++k) {
        if (slot.states[k].defined()) dict.set(prefix + impl_->state_names[k], slot.states[k]);
      }
    }
  }
  return dict;
}

void Optimizer::load_state_dict(const StateDict& state) {
  const std::string where = concat(type_name(), "::load_state_dict");
  TUTTI_CHECK(state.contains("type") && state.text("type") == type_name(), ValueError, where,
              ": the state is not that of ", type_name(), " but of ",
              state.contains("type") ? state.text("type") : std::string("an object without a type"));
  std::vector<StateDict> options;
  std::vector<Loaded> loaded;
  StateReader reader(state, where, impl_->state_names, counts_steps());
  for (std::size_t g = 0; g < impl_->groups.size(); ++g) {
    const detail::Group& group = impl_->groups[g];
    options.push_back(state.with_prefix(group_prefix(g)));
    TUTTI_CHECK(options.back().contains("parameter_count"), ValueError, where, ": the optimizer has ",
                group_count(), " parameter groups, the state ", g);
    const std::int64_t count = options.back().integer("parameter_count");
    TUTTI_CHECK(count == static_cast<std::int64_t>(group.slots.size()), ValueError, where,
                ": parameter group ", g, " has ", group.slots.size(), " parameters, in the state ", count);
    for (const detail::Slot& slot : group.slots) loaded.push_back(reader.read(loaded.size(), slot.parameter));
  }
  TUTTI_CHECK(!state.contains(group_prefix(group_count()) + "parameter_count"), ValueError, where,
              ": the optimizer has ", group_count(), " parameter groups, the state more");
  const auto entries = static_cast<std::size_t>(std::count_if(
      state.begin(), state.end(), [](const auto& entry) { return entry.first.starts_with("state."); }));
  TUTTI_CHECK(reader.found() == entries, ValueError, where, ": ", entries - reader.found(),
              " of the entries \"state.*\" belong to no parameter of the optimizer");
  for (const StateDict& group : options) {
    if (group.contains("initial_lr"))
      detail::check_not_negative(where.c_str(), "initial_lr", group.real("initial_lr"));
  }
  load_options(options);
  for (std::size_t g = 0, number = 0; g < impl_->groups.size(); ++g) {
    impl_->groups[g].initial_lr.reset();
    if (options[g].contains("initial_lr")) impl_->groups[g].initial_lr = options[g].real("initial_lr");
    for (detail::Slot& slot : impl_->groups[g].slots) {
      slot.states = std::move(loaded[number].states);
      slot.steps = loaded[number++].steps;
      slot.is_fresh = !slot.states[0].defined();
    }
  }
}

}  // namespace tutti::optim
