// SPDX-License-Identifier: Apache-2.0
#include "tutti/tensor/state_dict.hpp"

#include <algorithm>

#include "tutti/core/error.hpp"

namespace tutti {

namespace {

constexpr const char* kKinds[] = {"a tensor", "an integer", "a real number", "text"};

// The value of the wanted kind. N is its place in StateDict::Value.
template <std::size_t N>
const auto& get(const StateDict& state, std::string_view name) {
  const StateDict::Value* value = state.find(name);
  TUTTI_CHECK(value != nullptr, Error, "state_dict: there is no entry \"", name, "\", wanted ", kKinds[N]);
  TUTTI_CHECK(value->index() == N, Error, "state_dict: entry \"", name, "\" is ", kKinds[value->index()],
              ", wanted ", kKinds[N]);
  return std::get<N>(*value);
}

}  // namespace

// Position in by_name_ of the first name that is not less.
std::size_t StateDict::lower_bound(std::string_view name) const noexcept {
  const auto place = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                      [&](std::size_t index, std::string_view wanted) {
                                        return std::string_view(entries_[index].first) < wanted;
                                      });
  return static_cast<std::size_t>(place - by_name_.begin());
}

StateDict::StateDict() = default;
StateDict::StateDict(const StateDict& other) = default;
StateDict::StateDict(StateDict&& other) noexcept = default;
StateDict& StateDict::operator=(const StateDict& other) = default;
StateDict& StateDict::operator=(StateDict&& other) noexcept = default;
StateDict::~StateDict() = default;

std::size_t StateDict::size() const noexcept { return entries_.size(); }
const StateDict::Entry* StateDict::begin() const noexcept { return entries_.data(); }
const StateDict::Entry* StateDict::end() const noexcept { return entries_.data() + entries_.size(); }

void StateDict::set(std::string name, Value value) {
  const std::size_t place = lower_bound(name);
  if (place < by_name_.size() && entries_[by_name_[place]].first == name) {
    entries_[by_name_[place]].second = std::move(value);
    return;
  }
  by_name_.insert(by_name_.begin() + static_cast<std::ptrdiff_t>(place), entries_.size());
  entries_.emplace_back(std::move(name), std::move(value));
}

const StateDict::Value* StateDict::find(std::string_view name) const noexcept {
  const std::size_t place = lower_bound(name);
  if (place == by_name_.size()) return nullptr;
  const Entry& entry = entries_[by_name_[place]];
  return entry.first == name ? &entry.second : nullptr;
}

const Tensor& StateDict::tensor(std::string_view name) const { return get<0>(*this, name); }
std::int64_t StateDict::integer(std::string_view name) const { return get<1>(*this, name); }
const std::string& StateDict::text(std::string_view name) const { return get<3>(*this, name); }

double StateDict::real(std::string_view name) const {
  const Value* value = find(name);
  if (value != nullptr && value->index() == 1) return static_cast<double>(std::get<1>(*value));
  return get<2>(*this, name);
}

void StateDict::merge(std::string_view prefix, const StateDict& other) {
  if (&other == this) {
    merge(prefix, StateDict(other));
    return;
  }
  for (const auto& [name, value] : other) set(concat(prefix, name), value);
}

StateDict StateDict::with_prefix(std::string_view prefix) const {
  StateDict result;
  for (const auto& [name, value] : entries_) {
    if (std::string_view(name).substr(0, prefix.size()) == prefix)
      result.set(name.substr(prefix.size()), value);
  }
  return result;
}

}  // namespace tutti
