// SPDX-License-Identifier: Apache-2.0
// Checks of options, and options as entries of a StateDict.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tutti/core/error.hpp"
#include "tutti/tensor/state_dict.hpp"

namespace tutti::optim::detail {

inline void check_not_negative(const char* optimizer, const char* option, double value) {
  TUTTI_CHECK(std::isfinite(value) && value >= 0, ValueError, optimizer, ": ", option,
              " must be finite and at least 0, given ", value);
}

// For betas: 1 would divide by zero in the bias correction.
inline void check_in_unit_interval(const char* optimizer, const char* option, double value) {
  TUTTI_CHECK(value >= 0 && value < 1, ValueError, optimizer, ": ", option,
              " must be at least 0 and below 1, given ", value);
}

template <class Options>
struct RealOption {
  const char* name;
  double Options::*member;
};
template <class Options>
struct BoolOption {
  const char* name;
  bool Options::*member;
};

template <class Options>
void save_fields(std::span<const RealOption<Options>> reals, std::span<const BoolOption<Options>> bools,
                 const Options& options, StateDict& state) {
  for (const auto& [name, member] : reals) state.set(name, options.*member);
  for (const auto& [name, member] : bools) state.set(name, std::int64_t{options.*member ? 1 : 0});
}

// ValueError that names the missing entry.
template <class Options>
Options load_fields(std::span<const RealOption<Options>> reals, std::span<const BoolOption<Options>> bools,
                    const char* optimizer, std::size_t group, const StateDict& state) {
  const auto check = [&](const char* name) {
    TUTTI_CHECK(state.contains(name), ValueError, optimizer,
                "::load_state_dict: there is no entry \"param_groups.", group, ".", name, "\"");
  };
  Options options;
  for (const auto& [name, member] : reals) {
    check(name);
    options.*member = state.real(name);
  }
  for (const auto& [name, member] : bools) {
    check(name);
    options.*member = state.integer(name) != 0;
  }
  validate(options);
  return options;
}

}  // namespace tutti::optim::detail
