// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a thread's time goes to: each moment belongs to exactly one phase, so the phases of a step sum to its wall time.
/// Always on; entering or leaving a phase reads the clock once.
#pragma once

#include <array>
#include <cstdint>

#include "tutti/core/export.hpp"
#include "tutti/core/trace.hpp"

namespace tutti::phase {

enum class Kind : std::uint8_t {
  kOther,     ///< Everything outside the scopes below.
  kDataWait,  ///< Waiting for the next batch.
  kForward,   ///< From the first call of a module until another phase begins: the loss is part of it.
  kBackward,  ///< Running backward, but for the next.
  kExposedCommunication,  ///< Waiting for other ranks: communication that computing did not hide.
  kOptimizer,             ///< Optimizer::step.
};
inline constexpr int kKinds = 6;

/// Nanoseconds of each phase.
using Totals = std::array<std::int64_t, kKinds>;

namespace detail {
struct Clock {
  Kind current = Kind::kOther;
  std::int64_t since_ns = 0;
  Totals totals{};
};
TUTTI_API Clock& clock() noexcept;  // the calling thread's
TUTTI_API Kind enter(Kind kind) noexcept;
}  // namespace detail

/// The calling thread's totals since it first asked or entered a phase; the difference of two calls is the time between.
TUTTI_API Totals totals() noexcept;

/// A module is called: the forward phase begins unless the thread is in a phase already. It has no end of its own.
inline void begin_forward() noexcept {
  if (detail::clock().current == Kind::kOther) detail::enter(Kind::kForward);
}

/// The calling thread is in a phase while this lives; a scope inside another takes its time away from the outer one.
class Scope {
 public:
  explicit Scope(Kind kind) noexcept : previous_(detail::enter(kind)) {
    if (previous_ == Kind::kForward) previous_ = Kind::kOther;
  }
  ~Scope() { detail::enter(previous_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Kind previous_;
};

}  // namespace tutti::phase
