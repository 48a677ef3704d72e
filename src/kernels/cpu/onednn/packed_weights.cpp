// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/onednn/packed_weights.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace tutti::cpu::onednn {

namespace {

struct Copy {
  Key layout;
  std::uint64_t version = 0;
  bool used_before = false;  // in this version
  bool filled = false;       // with this version
  std::shared_ptr<void> memory;
  std::size_t bytes = 0;
};

// What tutti_packed_slot::handle points at.
struct Copies {
  std::mutex mutex;
  std::vector<Copy> copies;
};

// Layouts of one weight in use at a time: forward, backward, a few batch sizes.
constexpr std::size_t kMostCopies = 8;

std::atomic<std::uint64_t> filled_copies{0};

// Made by the first call, of which there may be several at once.
Copies& copies_of(tutti_packed_slot& slot) {
  const std::atomic_ref<void*> handle(slot.handle);
  void* known = handle.load(std::memory_order_acquire);
  if (known == nullptr) {
    auto made = std::make_unique<Copies>();
    if (handle.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
      // The thread that frees the storage reads this, after all calls have ended.
      slot.destroy = [](void* copies) { delete static_cast<Copies*>(copies); };
      known = made.release();
    }
  }
  return *static_cast<Copies*>(known);
}

Copy& find_or_add(std::vector<Copy>& copies, const Key& layout) {
  for (Copy& copy : copies) {
    if (copy.layout == layout) return copy;
  }
  if (copies.size() == kMostCopies) {
    copies.erase(std::min_element(copies.begin(), copies.end(),
                                  [](const Copy& a, const Copy& b) { return a.version < b.version; }));
  }
  copies.emplace_back().layout = layout;
  return copies.back();
}

}  // namespace

std::shared_ptr<const void> packed_copy(const tutti_weight& weight, const Key& layout, std::size_t bytes,
                                        PackWhen when, PackFunction pack, const void* context) {
  if (!weight.slot) return nullptr;
  Copies& slot = copies_of(*weight.slot);
  const std::lock_guard lock(slot.mutex);
  Copy& copy = find_or_add(slot.copies, layout);
  if (copy.version != weight.version) {
    copy.version = weight.version;
    copy.used_before = copy.filled = false;
  }
  if (when == PackWhen::kSecondUse && !copy.used_before) {
    copy.used_before = true;
    return nullptr;
  }
  if (!copy.filled) {
    // A copy that a call in another thread still reads is left to it.
    if (copy.bytes != bytes || copy.memory.use_count() != 1) {
      copy.memory = std::shared_ptr<void>(allocate_aligned(bytes).release(), FreeMemory());
      copy.bytes = bytes;
    }
    pack(context, copy.memory.get());
    copy.filled = true;
    filled_copies.fetch_add(1, std::memory_order_relaxed);
  }
  return copy.memory;
}

std::uint64_t packings() noexcept { return filled_copies.load(std::memory_order_relaxed); }

}  // namespace tutti::cpu::onednn
