// SPDX-License-Identifier: Apache-2.0
#include "optim/parameter_list.hpp"

#include "backend/registry.hpp"
#include "tensor/raw.hpp"
#include "tutti/core/error.hpp"

namespace tutti::optim::detail {

namespace {

// The order in memory in which a parameter, its gradient and its state are updated: that of the parameter, densely.
class Order {
 public:
  explicit Order(const Tensor& parameter)
      : parameter_(parameter), is_contiguous_(parameter.impl()->is_contiguous) {
    if (!is_contiguous_) strides_ = raw::dense_strides(parameter);
  }

  bool matches(const Tensor& tensor) const noexcept {
    if (is_contiguous_) return tensor.impl()->is_contiguous;
    const Dims& sizes = parameter_.sizes();
    const Dims& strides = tensor.impl()->strides;
    for (int d = 0; d < sizes.size(); ++d) {
      if (sizes[d] > 1 && strides[d] != strides_[d]) return false;
    }
    return true;
  }
  // An uninitialised tensor like the parameter.
  Tensor make() const {
    return empty_strided(parameter_.sizes(),
                         is_contiguous_ ? raw::contiguous_strides(parameter_.sizes()) : strides_,
                         parameter_.dtype(), parameter_.device());
  }
  Tensor copy_of(const Tensor& tensor) const {
    Tensor copy = make();
    raw::copy(copy, tensor);
    return copy;
  }

 private:
  const Tensor& parameter_;
  bool is_contiguous_;
  Dims strides_;
};

// A module may have been moved or converted since the state was made.
void ensure_state(Tensor& state, const Tensor& parameter, const Order& order) {
  if (!state.defined()) {
    state = order.make();
    raw::fill(state, 0.0);
  } else if (state.dtype() != parameter.dtype() || state.device() != parameter.device() ||
             !order.matches(state)) {
    state = order.copy_of(state);
  }
}

void check_gradient(const Slot& slot, const Tensor& gradient) {
  const Tensor& parameter = slot.parameter;
  TUTTI_CHECK(gradient.dtype() == parameter.dtype(), DTypeError, "optimizer step: a gradient of ",
              gradient.dtype(), " for a parameter of ", parameter.dtype(), " and shape ", parameter.sizes());
  TUTTI_CHECK(gradient.device() == parameter.device(), DeviceError, "optimizer step: a gradient on ",
              gradient.device(), " for a parameter on ", parameter.device(), " of shape ", parameter.sizes());
  TUTTI_CHECK(gradient.sizes() == parameter.sizes(), ShapeError, "optimizer step: a gradient of shape ",
              gradient.sizes(), " for a parameter of shape ", parameter.sizes());
  // A parameter may have been given other memory since the optimizer was made.
  raw::check_writable(parameter, "optimizer step: a parameter");
}

}  // namespace

void ParameterList::clear() noexcept {
  slots.clear();
  numels.clear();
  parameters.clear();
  gradients.clear();
  for (auto& pointers : states) pointers.clear();
}

tutti_tensor_list ParameterList::arrays() const noexcept {
  const auto state = [this](std::size_t k) {
    return ((states_used >> k) & 1U) != 0 ? states[k].data() : nullptr;
  };
  return {.count = static_cast<std::int64_t>(numels.size()),
          .numels = numels.data(),
          .dtype = static_cast<std::int32_t>(dtype),
          .params = parameters.data(),
          .grads = gradients.data(),
          .state1 = state(0),
          .state2 = state(1),
          .state3 = state(2)};
}

tutti_stream ParameterList::stream() const { return current_stream(device).handle(); }

const tutti_backend& ParameterList::backend() const { return backend::get(static_cast<int>(device.type())); }

void ListBuilder::start() noexcept {
  used_ = 0;
  copies_.clear();
  not_in_place_.clear();
}

ParameterList& ListBuilder::list_of(std::size_t group, const Slot& slot, std::int64_t step, unsigned states) {
  const DType dtype = slot.parameter.dtype();
  const Device device = slot.parameter.device();
  for (std::size_t i = used_; i-- > 0;) {
    ParameterList& list = lists_[i];
    if (list.group == group && list.step == step && list.dtype == dtype && list.device == device) return list;
  }
  if (used_ == lists_.size()) lists_.emplace_back();
  ParameterList& list = lists_[used_++];
  list.clear();
  list.group = group;
  list.dtype = dtype;
  list.device = device;
  list.step = step;
  list.states_used = states;
  return list;
}

void ListBuilder::add(std::size_t group, Slot& slot, const Tensor& gradient, unsigned states_needed,
                      bool counts_steps) {
  check_gradient(slot, gradient);
  const Order order(slot.parameter);
  for (std::size_t k = 0; k < kMaxStates; ++k) {
    if (((states_needed >> k) & 1U) != 0) ensure_state(slot.states[k], slot.parameter, order);
  }
  const std::int64_t step = counts_steps ? slot.steps + 1 : (slot.is_fresh ? 1 : 2);
  ParameterList& list = list_of(group, slot, step, states_needed);
  void* parameter_data = slot.parameter.impl()->data;
  if (!order.matches(slot.parameter)) {
    parameter_data =
        not_in_place_.emplace_back(slot.parameter, order.copy_of(slot.parameter)).second.impl()->data;
  }
  void* gradient_data = gradient.impl()->data;
  if (!order.matches(gradient)) gradient_data = copies_.emplace_back(order.copy_of(gradient)).impl()->data;
  list.slots.push_back(&slot);
  list.numels.push_back(slot.parameter.numel());
  list.parameters.push_back(parameter_data);
  list.gradients.push_back(gradient_data);
  for (std::size_t k = 0; k < kMaxStates; ++k) {
    if (((states_needed >> k) & 1U) != 0) list.states[k].push_back(slot.states[k].impl()->data);
  }
}

void ListBuilder::finish() {
  for (const auto& [parameter, copy] : not_in_place_) raw::copy(parameter, copy);
  for (std::size_t i = 0; i < used_; ++i) {
    for (Slot* slot : lists_[i].slots) {
      ++slot->steps;
      if (lists_[i].states_used != 0) slot->is_fresh = false;
      raw::bump_version(slot->parameter);
    }
  }
  copies_.clear();
  not_in_place_.clear();
}

}  // namespace tutti::optim::detail
