// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/random.hpp"

#include <Random123/philox.h>

#include <atomic>
#include <utility>

#include "core/draw_scope.hpp"
#include "core/philox.hpp"

namespace tutti {

namespace {
std::atomic<std::uint64_t> default_seed{0};
constinit thread_local DrawScope* innermost_scope = nullptr;
}  // namespace

std::array<std::uint32_t, 4> philox_block(const PhiloxState& at) noexcept {
  static_assert(philox4x32_rounds == 10);
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32U); };
  const r123::Philox4x32::ctr_type counter = {
      {low(at.offset), high(at.offset), low(at.stream), high(at.stream)}};
  const r123::Philox4x32::key_type key = {{low(at.seed), high(at.seed)}};
  const r123::Philox4x32::ctr_type out = r123::Philox4x32{}(counter, key);
  return {out[0], out[1], out[2], out[3]};
}

DrawScope::DrawScope(std::vector<PhiloxState>& draws, Mode mode) noexcept
    : draws_(draws), mode_(mode), outer_(std::exchange(innermost_scope, this)) {}
DrawScope::~DrawScope() { innermost_scope = outer_; }

PhiloxState DrawScope::start(const PhiloxState& state) {
  const std::size_t i = count_++;
  if (mode_ == Mode::kRepeat) return i < draws_.size() ? draws_[i] : state;
  draws_.push_back(outer_ != nullptr ? outer_->start(state) : state);
  return draws_.back();
}

PhiloxState Generator::reserve(std::uint64_t count) {
  const PhiloxState start = innermost_scope == nullptr ? state_ : innermost_scope->start(state_);
  // The default one goes on in a repetition too, after which checkpoint puts it back: a function may look at it.
  const bool advances =
      innermost_scope == nullptr || innermost_scope->advances() || this == &default_generator();
  if (advances) state_.offset += (count + 3) / 4;
  return start;
}

std::uint32_t Generator::next_u32() { return philox_block(reserve(1))[0]; }

std::uint64_t Generator::next_u64() {
  const std::array<std::uint32_t, 4> lanes = philox_block(reserve(2));
  return (static_cast<std::uint64_t>(lanes[1]) << 32U) | lanes[0];
}

double Generator::next_double() { return static_cast<double>(next_u64() >> 11U) * 0x1p-53; }

// Lemire 2019, "Fast random integer generation in an interval": the high half of bits * bound is uniform once
// the low halves below 2^64 mod bound are rejected.
std::uint64_t Generator::next_below(std::uint64_t bound) {
  if (bound <= 1) return 0;
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next_u64()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>(next_u64()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64U);
}

Generator& default_generator() noexcept {
  thread_local Generator generator{default_seed.load(std::memory_order_relaxed)};
  return generator;
}

void manual_seed(std::uint64_t seed) noexcept {
  default_seed.store(seed, std::memory_order_relaxed);
  default_generator().manual_seed(seed);
}

}  // namespace tutti
