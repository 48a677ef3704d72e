// SPDX-License-Identifier: Apache-2.0
// Draws of random numbers that are to be the same once more: autograd's checkpoint runs a function twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tutti/core/random.hpp"

namespace tutti {

// While it lives, it notes where each draw of this thread starts, whichever generator it is from; or it repeats what another one
// has noted, in the same order. A repeated draw leaves its generator alone: that one went on the first time, and may be a
// generator that lives no longer. Scopes nest; what an inner one repeats is no draw of the outer ones.
class DrawScope {
 public:
  enum class Mode : std::uint8_t { kNote, kRepeat };
  DrawScope(std::vector<PhiloxState>& draws, Mode mode) noexcept;
  ~DrawScope();
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

  // Draws so far; those past the noted ones count too, though there is nothing to repeat.
  std::size_t count() const noexcept { return count_; }
  // Where a draw starts, of a generator that is now at `state`.
  PhiloxState start(const PhiloxState& state);
  // True if a draw inside of it takes numbers from its generator.
  bool advances() const noexcept { return mode_ == Mode::kNote && (outer_ == nullptr || outer_->advances()); }

 private:
  std::vector<PhiloxState>& draws_;
  Mode mode_;
  DrawScope* outer_;
  std::size_t count_ = 0;
};

}  // namespace tutti
