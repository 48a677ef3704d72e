// SPDX-License-Identifier: Apache-2.0
#include "tutti/profiler/step_profiler.hpp"

namespace tutti::profiler {

StepProfiler::StepProfiler(std::int64_t warmup_steps) noexcept
    : warmup_left_(warmup_steps), start_(phase::totals()) {}

void StepProfiler::end_step() noexcept {
  const phase::Totals now = phase::totals();
  last_.steps = 1;
  for (std::size_t i = 0; i < now.size(); ++i) last_.nanoseconds[i] = now[i] - start_[i];
  start_ = now;
  if (warmup_left_ > 0) {
    --warmup_left_;
    return;
  }
  ++total_.steps;
  for (std::size_t i = 0; i < now.size(); ++i) total_.nanoseconds[i] += last_.nanoseconds[i];
}

void StepProfiler::restart() noexcept { start_ = phase::totals(); }

}  // namespace tutti::profiler
