// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counter-based random numbers (Philox4x32-10 of Random123; Salmon et al. 2011): element i of a tensor
/// depends only on seed, stream and offset, never on the number of threads.
#pragma once

#include <cstdint>

#include "tutti/core/export.hpp"

namespace tutti {

/// Where a kernel's random numbers start: key = seed, counter = (offset + i / 4, stream), lane = i % 4.
struct PhiloxState {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t offset = 0;
};

/// A source of random numbers: the state is three integers. Copying it copies the sequence.
/// Not thread-safe; give each thread its own stream.
class TUTTI_API Generator {
 public:
  explicit Generator(std::uint64_t seed = 0, std::uint64_t stream = 0) noexcept : state_{seed, stream, 0} {}

  std::uint64_t seed() const noexcept { return state_.seed; }
  std::uint64_t stream() const noexcept { return state_.stream; }
  /// Restarts the sequence.
  void manual_seed(std::uint64_t seed) noexcept { state_ = {seed, state_.stream, 0}; }
  const PhiloxState& state() const noexcept { return state_; }
  void set_state(const PhiloxState& state) noexcept { state_ = state; }

  /// Takes `count` 32-bit numbers: returns the state where they start and advances past them (whole
  /// counters).
  PhiloxState reserve(std::uint64_t count);
  /// Next 32 or 64 uniform bits, a uniform double in [0, 1) with 53 bits, and an unbiased integer in [0,
  /// bound).
  std::uint32_t next_u32();
  std::uint64_t next_u64();
  double next_double();
  std::uint64_t next_below(std::uint64_t bound);

 private:
  PhiloxState state_;
};

/// The calling thread's default generator: used by factories, dropout and initialisers when none is given.
TUTTI_API Generator& default_generator() noexcept;
/// Seeds the calling thread's default generator, and the defaults of threads that start later.
TUTTI_API void manual_seed(std::uint64_t seed) noexcept;

}  // namespace tutti
