// SPDX-License-Identifier: Apache-2.0
// What an optimizer keeps for each parameter, and the arrays that one kernel call takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "tutti/optim/optimizer.hpp"

namespace tutti::optim::detail {

inline constexpr std::size_t kMaxStates = 3;

struct Slot {
  Tensor parameter;
  std::array<Tensor, kMaxStates>
      states;  // in the order of the optimizer's state names; dense, in the parameter's order
  std::int64_t steps = 0;
  bool is_fresh = true;  // no update has written the first state yet
};

struct Group {
  std::vector<Tensor> parameters;
  std::vector<Slot> slots;
  std::optional<double> initial_lr;
};

// Parameters that one kernel call updates: of one group, dtype and device, after equally many steps.
struct ParameterList {
  std::size_t group = 0;
  DType dtype = DType::kFloat32;
  Device device;
  std::int64_t step = 0;  // of this update: 1 in the first; only 1 and 2 (later) where steps are not counted
  std::vector<Slot*> slots;
  std::vector<std::int64_t> numels;
  std::vector<void*> parameters;
  std::vector<void*> gradients;
  std::array<std::vector<void*>, kMaxStates> states;
  unsigned states_used = 0;

  void clear() noexcept;
  tutti_tensor_list arrays() const noexcept;
  tutti_stream stream() const;
  const tutti_backend& backend() const;
};

// Sorts the parameters that have a gradient into lists. Vectors keep their capacity: a warm step allocates nothing.
class ListBuilder {
 public:
  void start() noexcept;
  // Makes missing states; checks the gradient. `counts_steps`: see Optimizer.
  void add(std::size_t group, Slot& slot, const Tensor& gradient, unsigned states_needed, bool counts_steps);
  std::size_t size() const noexcept { return used_; }
  const ParameterList& operator[](std::size_t i) const noexcept { return lists_[i]; }
  // After the update: parameters that were updated in a copy, steps, versions.
  void finish();

 private:
  ParameterList& list_of(std::size_t group, const Slot& slot, std::int64_t step, unsigned states);

  std::vector<ParameterList> lists_;
  std::size_t used_ = 0;
  std::vector<Tensor> copies_;  // of gradients whose layout differs
  std::vector<std::pair<Tensor, Tensor>>
      not_in_place_;  // parameters that are not dense, and their dense copies
};

struct OptimizerImpl {
  std::vector<const char*> state_names;
  std::vector<Group> groups;
  ListBuilder lists;
};

}  // namespace tutti::optim::detail
