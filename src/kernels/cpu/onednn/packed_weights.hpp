// SPDX-License-Identifier: Apache-2.0
// Re-packed copies of a weight, kept in the slot that its storage owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "kernels/cpu/onednn/adapter.hpp"

namespace tutti::cpu::onednn {

enum class PackWhen {
  kFirstUse,   // the layout is needed anyway
  kSecondUse,  // packing pays only if this version of the weight is used again: not in plain training steps
};

// The copy of `weight` in the layout that `layout` stands for, or null: then the weight has no slot, or it is too early
// (kSecondUse). pack fills the copy, under the lock of the slot.
using PackFunction = void (*)(const void* context, void* memory);
std::shared_ptr<const void> packed_copy(const tutti_weight& weight, const Key& layout, std::size_t bytes,
                                        PackWhen when, PackFunction pack, const void* context);
template <class Pack>
std::shared_ptr<const void> packed_copy(const tutti_weight& weight, const Key& layout, std::size_t bytes,
                                        PackWhen when, const Pack& pack) {
  return packed_copy(
      weight, layout, bytes, when,
      [](const void* context, void* memory) { (*static_cast<const Pack*>(context))(memory); },
      static_cast<const void*>(&pack));
}

// How many copies this process has filled so far.
std::uint64_t packings() noexcept;

}  // namespace tutti::cpu::onednn
