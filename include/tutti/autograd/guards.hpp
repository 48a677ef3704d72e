// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whether operations of this thread are recorded for backward.
#pragma once

#include <cstdint>
#include <utility>

#include "tutti/core/export.hpp"

namespace tutti::autograd {

namespace detail {

struct SavedTensorsHooks;

/// What autograd knows about the calling thread. One lookup for each operation.
struct ThreadState {
  bool grad_enabled = true;
  bool inference = false;
  bool anomaly = false;
  bool recomputing = false;
  std::uint64_t next_sequence = 1;                   ///< Of the thread's next node.
  SavedTensorsHooks* saved_tensors_hooks = nullptr;  ///< Innermost pair of pack and unpack hooks.
};
TUTTI_API ThreadState& thread_state() noexcept;

}  // namespace detail

/// True if operations on tensors that require gradients are recorded on this thread (the default).
inline bool grad_enabled() noexcept { return detail::thread_state().grad_enabled; }
/// True inside an InferenceGuard.
inline bool inference_enabled() noexcept { return detail::thread_state().inference; }

/// True while checkpoint computes its function again in backward: what a forward counts or averages beside its result, as batch
/// norm its statistics, was counted the first time.
inline bool recomputing() noexcept { return detail::thread_state().recomputing; }

namespace detail {
/// Sets grad_enabled for a scope.
class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) noexcept : GradModeGuard(thread_state(), enabled) {}
  GradModeGuard(ThreadState& state, bool enabled) noexcept
      : state_(state), previous_(std::exchange(state.grad_enabled, enabled)) {}
  ~GradModeGuard() { state_.grad_enabled = previous_; }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  ThreadState& state_;
  bool previous_;
};
}  // namespace detail

/// Records nothing on this thread until it dies: for evaluation and for updates of parameters.
class NoGradGuard : detail::GradModeGuard {
 public:
  NoGradGuard() noexcept : GradModeGuard(false) {}
};

/// Records again inside a NoGradGuard. Has no effect on the rule that an InferenceGuard's results never enter
/// a graph.
class EnableGradGuard : detail::GradModeGuard {
 public:
  EnableGradGuard() noexcept : GradModeGuard(true) {}
};

/// Like NoGradGuard; moreover the results of operations can never be saved by a graph later (AutogradError),
/// which catches an evaluation whose results leak into training.
class InferenceGuard : detail::GradModeGuard {
 public:
  InferenceGuard() noexcept
      : GradModeGuard(false), previous_(std::exchange(detail::thread_state().inference, true)) {}
  ~InferenceGuard() { detail::thread_state().inference = previous_; }

 private:
  bool previous_;
};

/// Calls f without recording and returns its result: `autograd::no_grad([&] { weight.mul_(0.5); });`
template <class F>
decltype(auto) no_grad(F&& f) {
  NoGradGuard guard;
  return std::forward<F>(f)();
}

}  // namespace tutti::autograd
