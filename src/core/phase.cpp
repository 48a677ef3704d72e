// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/phase.hpp"

#include <utility>

namespace tutti::phase {

namespace detail {

Clock& clock() noexcept {
  static thread_local Clock clock;
  return clock;
}

Kind enter(Kind kind) noexcept {
  Clock& clock = detail::clock();
  const std::int64_t now = trace::now_ns();
  if (clock.since_ns != 0) clock.totals[static_cast<std::size_t>(clock.current)] += now - clock.since_ns;
  // Backward, optimizer and loader have trace points of their own; forward has an end only here.
  if (clock.current == Kind::kForward && kind != Kind::kForward && trace::enabled()) [[unlikely]]
    trace::detail::record("forward", clock.since_ns, 0);
  clock.since_ns = now;
  return std::exchange(clock.current, kind);
}

}  // namespace detail

Totals totals() noexcept {
  detail::Clock& clock = detail::clock();
  detail::enter(clock.current);
  return clock.totals;
}

}  // namespace tutti::phase
