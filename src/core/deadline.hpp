// SPDX-License-Identifier: Apache-2.0
// Deadlines of waits, on the steady clock. Who waits throws TimeoutError itself, since only it knows which
// ranks are missing.
#pragma once

#include <chrono>

namespace tutti {

// Seconds that a wait may take: TUTTI_TIMEOUT_S, default 600. ValueError if the variable is malformed.
double default_timeout_s();

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  Deadline() : Deadline(default_timeout_s()) {}
  // Timeouts above a century mean the same as a century: the clock's range ends at 292 years.
  explicit Deadline(double seconds) : seconds_(seconds), at_(Clock::now() + clipped(seconds)) {}

  bool passed() const noexcept { return Clock::now() >= at_; }
  // What the wait was allowed in all, for the message.
  double seconds() const noexcept { return seconds_; }
  double remaining_s() const noexcept { return std::chrono::duration<double>(at_ - Clock::now()).count(); }
  // For condition variables' wait_until.
  Clock::time_point time_point() const noexcept { return at_; }

 private:
  static Clock::duration clipped(double seconds) {
    constexpr double kCentury = 3.2e9;
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(seconds < kCentury ? seconds : kCentury));
  }

  double seconds_;
  Clock::time_point at_;
};

}  // namespace tutti
