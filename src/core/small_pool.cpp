// SPDX-License-Identifier: Apache-2.0
#include "core/small_pool.hpp"

#include <mutex>
#include <new>

namespace tutti {

namespace detail {

constinit thread_local SmallLists small_lists{};

namespace {

constexpr std::size_t kBatch = 32;  // blocks that move between a thread and the global list at a time
constexpr std::uint32_t kListLimit = 4 * kBatch;  // blocks that a thread keeps of a class: at most 128 KiB
constexpr std::align_val_t kAlignment{kSmallStep};

// Batches of one class that no thread holds. Trivially destructible, so that it works until the process is
// gone.
struct GlobalList {
  std::mutex mutex;
  SmallBlock* batches = nullptr;  // each a null-terminated list of at most kBatch blocks
  std::size_t chunks = 0;
};
constinit GlobalList global_lists[kSmallClasses];

enum class ThreadState : std::uint8_t { kNew, kActive, kEnded };
constinit thread_local ThreadState thread_state = ThreadState::kNew;

constexpr std::size_t block_size(std::size_t index) noexcept { return (index + 1) * kSmallStep; }

// A chunk of one batch, cut into a list.
SmallBlock* new_batch(std::size_t index) {
  const std::size_t size = block_size(index);
  auto* chunk = static_cast<std::byte*>(::operator new(size* kBatch, kAlignment));
  SmallBlock* head = nullptr;
  for (std::size_t i = kBatch; i-- > 0;) head = new (chunk + i * size) SmallBlock{head, nullptr};
  return head;
}

SmallBlock* take_batch(std::size_t index) {
  GlobalList& global = global_lists[index];
  {
    const std::lock_guard lock(global.mutex);
    if (SmallBlock* batch = global.batches; batch != nullptr) {
      global.batches = batch->next_batch;
      return batch;
    }
    ++global.chunks;
  }
  return new_batch(index);
}

void give_batch(std::size_t index, SmallBlock* batch) noexcept {
  GlobalList& global = global_lists[index];
  const std::lock_guard lock(global.mutex);
  batch->next_batch = global.batches;
  global.batches = batch;
}

// Cuts at most kBatch blocks off a thread's list.
SmallBlock* cut_batch(SmallBlock*& head, std::uint32_t& cut) noexcept {
  SmallBlock* const batch = head;
  SmallBlock* last = batch;
  for (cut = 1; cut < kBatch && last->next != nullptr; ++cut) last = last->next;
  head = last->next;
  last->next = nullptr;
  return batch;
}

struct ListsOwner {
  ~ListsOwner() {
    thread_state = ThreadState::kEnded;
    for (std::size_t index = 0; index < kSmallClasses; ++index) {
      small_lists.room[index] = 0;
      std::uint32_t cut = 0;
      while (small_lists.head[index] != nullptr) give_batch(index, cut_batch(small_lists.head[index], cut));
    }
  }
  void touch() const noexcept {}
};

// False on a thread whose lists are gone.
bool activate_thread() noexcept {
  if (thread_state == ThreadState::kNew) {
    thread_local const ListsOwner owner;
    owner.touch();
    for (std::uint32_t& room : small_lists.room) room = kListLimit;
    thread_state = ThreadState::kActive;
  }
  return thread_state == ThreadState::kActive;
}

}  // namespace

void* small_allocate_slow(std::size_t bytes) {
#if !defined(TUTTI_SMALL_POOL_BYPASS)
  if (bytes - 1 < kSmallLimit) {
    const std::size_t index = small_class(bytes);
    const bool active = activate_thread();
    SmallBlock* const block = take_batch(index);
    SmallBlock* const rest = block->next;
    if (active) {
      std::uint32_t count = 0;
      for (const SmallBlock* at = rest; at != nullptr; at = at->next) ++count;
      small_lists.head[index] = rest;
      small_lists.room[index] = kListLimit - count;
    } else if (rest != nullptr) {
      give_batch(index, rest);
    }
    return block;
  }
#endif
  return ::operator new(bytes, kAlignment);
}

void small_release_slow(void* memory, std::size_t bytes) noexcept {
#if !defined(TUTTI_SMALL_POOL_BYPASS)
  if (bytes - 1 < kSmallLimit) {
    const std::size_t index = small_class(bytes);
    if (!activate_thread()) {
      give_batch(index, new (memory) SmallBlock{nullptr, nullptr});
      return;
    }
    if (small_lists.room[index] == 0) {
      std::uint32_t cut = 0;
      SmallBlock* const batch = cut_batch(small_lists.head[index], cut);
      small_lists.room[index] = cut;
      give_batch(index, batch);
    }
    --small_lists.room[index];
    small_lists.head[index] = new (memory) SmallBlock{small_lists.head[index], nullptr};
    return;
  }
#endif
  ::operator delete(memory, kAlignment);
}

}  // namespace detail

SmallPoolStats small_pool_stats() {
  SmallPoolStats stats;
  for (detail::GlobalList& global : detail::global_lists) {
    const std::lock_guard lock(global.mutex);
    stats.chunks += global.chunks;
    for (const detail::SmallBlock* batch = global.batches; batch != nullptr; batch = batch->next_batch) {
      for (const detail::SmallBlock* block = batch; block != nullptr; block = block->next)
        ++stats.global_blocks;
    }
  }
  return stats;
}

}  // namespace tutti
