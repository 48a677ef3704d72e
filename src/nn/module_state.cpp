// SPDX-License-Identifier: Apache-2.0
// A module's state_dict.
#include <unordered_set>

#include "nn/placed_tensor.hpp"
#include "tensor/raw.hpp"
#include "tutti/core/error.hpp"
#include "tutti/nn/module.hpp"

namespace tutti::nn {

StateDict ModuleBase::state_dict() const {
  std::vector<PlacedTensor> placed;
  collect("", placed);
  StateDict state;
  for (const PlacedTensor& place : placed) {
    if (place.kind != SlotKind::kTransientBuffer) state.set(place.name, place.tensor->detach());
  }
  return state;
}

namespace {
std::string lines_of(const char* what, const std::vector<std::string>& names) {
  std::string text;
  if (names.empty()) return text;
  text = concat("\n  ", what, ":");
  for (const std::string& name : names) text += concat("\n    ", name);
  return text;
}

struct LoadedTensor {
  std::string name;
  Tensor target, source;
};

// Makes sure that the copies can neither fail half-way nor change what another one is still to read.
void prepare(std::vector<LoadedTensor>& copies) {
  std::unordered_set<const void*> written;
  for (const LoadedTensor& copy : copies) {
    raw::check_writable(copy.target, concat("load_state_dict: ", copy.name));
    written.insert(copy.target.impl()->storage);
  }
  for (LoadedTensor& copy : copies) {
    if (written.contains(copy.source.impl()->storage) && !raw::is_same_view(copy.target, copy.source))
      copy.source = raw::clone(copy.source);
  }
}
}  // namespace

LoadReport ModuleBase::load_state_dict(const StateDict& state, bool strict) {
  std::vector<PlacedTensor> placed;
  collect("", placed);
  LoadReport report;
  std::unordered_set<std::string> known;
  std::vector<LoadedTensor> copies;
  for (const PlacedTensor& place : placed) {
    if (place.kind == SlotKind::kTransientBuffer) continue;
    known.insert(place.name);
    const StateDict::Value* value = state.find(place.name);
    const Tensor* source = value != nullptr ? std::get_if<Tensor>(value) : nullptr;
    if (source == nullptr) {
      report.missing.push_back(place.name);
    } else if (!source->defined()) {
      report.misshapen.push_back(
          concat(place.name, ": module ", place.tensor->sizes(), ", state_dict an undefined tensor"));
    } else if (!(source->sizes() == place.tensor->sizes())) {
      report.misshapen.push_back(
          concat(place.name, ": module ", place.tensor->sizes(), ", state_dict ", source->sizes()));
    } else {
      copies.push_back({place.name, *place.tensor, *source});
    }
  }
  for (const auto& [name, value] : state) {
    if (!known.contains(name)) report.unexpected.push_back(name);
  }
  TUTTI_CHECK(!strict || report.ok(), ModuleError, "load_state_dict: the entries do not fit ", type_name(),
              lines_of("missing (in the module, not in the state_dict)", report.missing),
              lines_of("unexpected (in the state_dict, not in the module)", report.unexpected),
              lines_of("misshapen", report.misshapen));
  prepare(copies);
  for (const LoadedTensor& copy : copies) {
    raw::copy(copy.target, copy.source);
    raw::bump_version(copy.target);
  }
  return report;
}

}  // namespace tutti::nn
