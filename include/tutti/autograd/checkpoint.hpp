// SPDX-License-Identifier: Apache-2.0
/// \file
/// Activation checkpointing: less memory for one more forward [Chen et al. 2016, Training Deep Nets with
/// Sublinear Memory Cost].
#pragma once

#include <concepts>
#include <functional>
#include <utility>

#include "tutti/core/export.hpp"
#include "tutti/tensor/tensor.hpp"

namespace tutti::autograd {

namespace detail {
/// Keeps no saved tensor of `forward`'s operations; runs `recompute` in backward to get them.
TUTTI_API void run_checkpointed(const std::function<void()>& forward, std::function<void()> recompute);
}  // namespace detail

/// Calls f(inputs...) and returns its result, but saves only the inputs: backward calls f once more, with the
/// same random numbers (the default generator's state is put back for it), to get the tensors that its
/// operations saved. f must compute the same again (AutogradError if its operations save other tensors the
/// second time), and what it captures must live until backward. Parameters that f captures get their
/// gradients, and their hooks run, exactly as without the checkpoint.
template <class F, std::same_as<Tensor>... Tensors>
auto checkpoint(F f, const Tensors&... inputs) {
  using Result = decltype(f(inputs...));
  Result result;
  detail::run_checkpointed(
      [&] { result = f(inputs...); },
      [f, ... kept = inputs]() mutable { static_cast<void>(f(std::as_const(kept)...)); });
  return result;
}

}  // namespace tutti::autograd
