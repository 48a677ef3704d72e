// SPDX-License-Identifier: Apache-2.0
// Seeds of different purposes that share no random numbers.
#pragma once

#include <cstdint>

namespace tutti::data {

// What a generator is for: part of its key.
enum class Purpose : std::uint64_t { kOrder = 1, kSample = 2 };

// splitmix64 [Steele et al. 2014]: one to one.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

// One to one in the seed for a fixed epoch and the other way round, and not symmetric.
constexpr std::uint64_t key_of(Purpose purpose, std::uint64_t seed, std::uint64_t epoch) noexcept {
  return mix(seed ^ mix(epoch ^ mix(static_cast<std::uint64_t>(purpose))));
}

}  // namespace tutti::data
