// SPDX-License-Identifier: Apache-2.0
// Memory that a thread keeps between calls: grows to the largest request, so that a repeated call allocates nothing.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/integers.hpp"

namespace tutti::cpu::onednn {

inline constexpr std::size_t kAlignment = 64;  // oneDNN's AMX kernels lose a factor of 2.5 below it

struct FreeMemory {
  void operator()(void* data) const noexcept { std::free(data); }
};
using AlignedMemory = std::unique_ptr<void, FreeMemory>;

inline AlignedMemory allocate_aligned(std::size_t bytes) {
  const std::size_t rounded = round_up(bytes, kAlignment);
  AlignedMemory memory(std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded));
  if (!memory) throw std::bad_alloc();
  return memory;
}

// What a piece of workspace is for; each purpose of each thread has its own memory, valid until the next request for
// the same purpose.
enum class Purpose {
  kScratchpad,
  kLeft,
  kRight,
  kLeftSplit,
  kRightSplit,
  kResult,
  kBias,
  kPacked,
  kPartials,
  kPartLeft,
  kPartRight,
  kPartResult,
  kGemm,
  kColumns,
  kReduction,
  kStage,
  kCall,
  kCount
};

inline void* workspace(Purpose purpose, std::size_t bytes) {
  struct Slot {
    AlignedMemory memory;
    std::size_t size = 0;
  };
  thread_local Slot slots[static_cast<int>(Purpose::kCount)];
  Slot& slot = slots[static_cast<int>(purpose)];
  if (slot.size < bytes) {
    slot.memory.reset();
    slot.size = 0;
    slot.memory = allocate_aligned(bytes);
    slot.size = bytes;
  }
  return slot.memory.get();
}

}  // namespace tutti::cpu::onednn
