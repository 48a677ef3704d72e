// SPDX-License-Identifier: Apache-2.0
/// \file
/// StepProfiler: what each training step's wall time went to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tutti/core/export.hpp"
#include "tutti/core/phase.hpp"

namespace tutti::profiler {

/// Time of some steps by phase, in nanoseconds. Every moment belongs to exactly one phase, so the phases sum to the wall time.
struct StepTimes {
  std::int64_t steps = 0;
  phase::Totals nanoseconds{};

  /// Time in one phase.
  std::int64_t operator[](phase::Kind kind) const noexcept {
    return nanoseconds[static_cast<std::size_t>(kind)];
  }
  /// Wall time of the steps.
  std::int64_t wall_ns() const noexcept {
    std::int64_t sum = 0;
    for (const std::int64_t part : nanoseconds) sum += part;
    return sum;
  }
};

/// Splits the calling thread's steps into data wait, forward, backward, exposed communication, optimizer and other. Always
/// exact, never sampled: a step costs one reading of the clock. progress() has one of its own; a loop without it does
///
///     profiler::StepProfiler steps;
///     for (...) {
///       ...
///       steps.end_step();
///     }
///
/// Use it in the thread that trains.
class TUTTI_API StepProfiler {
 public:
  /// Starts the first step. The first `warmup_steps` steps, in which memory and kernels are set up, stay out of total().
  explicit StepProfiler(std::int64_t warmup_steps = 1) noexcept;

  /// Ends a step and starts the next.
  void end_step() noexcept;
  /// Starts the step anew: what has passed since the last end_step() (an evaluation, say) belongs to no step.
  void restart() noexcept;

  /// All steps after the warm-up.
  const StepTimes& total() const noexcept { return total_; }
  /// The step that ended last.
  const StepTimes& last() const noexcept { return last_; }

 private:
  std::int64_t warmup_left_;
  phase::Totals start_;
  StepTimes last_;
  StepTimes total_;
};

}  // namespace tutti::profiler
