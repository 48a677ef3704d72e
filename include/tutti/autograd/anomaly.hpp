// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds the operation that made the first NaN.
#pragma once

#include <utility>

#include "tutti/autograd/guards.hpp"

namespace tutti::autograd {

/// While it lives, each result of an operation's forward and backward on this thread is searched for NaN; the
/// first one found throws AutogradError that names the operation. Slow: each check waits for the device.
class AnomalyGuard {
 public:
  explicit AnomalyGuard(bool on = true) noexcept
      : previous_(std::exchange(detail::thread_state().anomaly, on)) {}
  ~AnomalyGuard() { detail::thread_state().anomaly = previous_; }
  AnomalyGuard(const AnomalyGuard&) = delete;
  AnomalyGuard& operator=(const AnomalyGuard&) = delete;

 private:
  bool previous_;
};

}  // namespace tutti::autograd
