// SPDX-License-Identifier: Apache-2.0
/// \file
/// Activation checkpointing: less memory for one more forward [Chen et al. 2016, Training Deep Nets with
/// Sublinear Memory Cost].
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "tutti/core/error.hpp"
#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::autograd {

namespace detail {
using CheckpointFunction = std::function<void(std::span<const Tensor> inputs)>;
/// Keeps no saved tensor of the operations in `forward`; runs `recompute` with the same inputs in backward to get them.
TUTTI_API void run_checkpointed(const std::function<void()>& forward, CheckpointFunction recompute,
                                std::vector<Tensor> inputs);
}  // namespace detail

/// Calls f(inputs...) and returns its result, but saves only the inputs: backward calls f once more to get the tensors that its
/// operations saved. f must compute the same again (AutogradError if its operations save other tensors the second time, or an
/// input was modified in place), and what it captures by reference must live until backward. ValueError if f is an empty
/// std::function or a null pointer.
/// The second call gets the same random numbers, from whichever generators it draws them, and leaves those as they are. Nor does
/// batch norm update its running statistics again; operations of one's own can ask autograd::recomputing().
/// Parameters that f captures get their gradients, and their hooks run, exactly as without the checkpoint.
template <class F, std::same_as<Tensor>... Tensors>
auto checkpoint(F f, const Tensors&... inputs) {
  using Result = decltype(f(inputs...));
  const std::function<Result(const Tensors&...)> function = std::move(f);  // empty if f is, whatever its type
  TUTTI_CHECK(function != nullptr, ValueError, "checkpoint: the function is empty");
  Result result;
  detail::run_checkpointed([&] { result = function(inputs...); },
                           [function](std::span<const Tensor> kept) {
                             [&]<std::size_t... I>(std::index_sequence<I...>) {
                               static_cast<void>(function(kept[I]...));
                             }
                             (std::make_index_sequence<sizeof...(Tensors)>());
                           },
                           {inputs...});
  return result;
}

}  // namespace tutti::autograd
