// SPDX-License-Identifier: Apache-2.0
// Memory for small, short-lived objects (tensors' bodies, autograd nodes): free lists of the calling thread
// in classes of 64 bytes, about 2 ns a call, no lock while a list is neither empty nor full. Blocks start on
// 64 bytes.
//
//   small_allocate(48)     list of this thread, class 0 --(empty)--> global list --(empty)--> new chunk
//   small_release(p, 48)   list of this thread, class 0 --(full)---> global list
//
// Blocks move between a thread's lists and the global ones a batch at a time.
// A thread's lists go to the global list when it ends; what is called later on that thread (destructors of
// other thread-local objects, static destructors) uses the global list directly. Chunks are kept until the
// process ends. Under AddressSanitizer each block is the system's own, so that it finds use after release.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#define TUTTI_SMALL_POOL_BYPASS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TUTTI_SMALL_POOL_BYPASS 1
#endif
#endif

namespace tutti {

inline constexpr std::size_t kSmallStep = 64;
inline constexpr std::size_t kSmallLimit = 1024;  // larger blocks are the system's

namespace detail {

inline constexpr std::size_t kSmallClasses = kSmallLimit / kSmallStep;

struct SmallBlock {
  SmallBlock* next;
  SmallBlock* next_batch;  // in the first block of a batch on the global list
};

// One thread's lists. `room` is how many more blocks a list takes; it is 0 on a thread that has no lists yet
// or no longer, which sends every release to the slow path without a further check.
struct SmallLists {
  SmallBlock* head[kSmallClasses];
  std::uint32_t room[kSmallClasses];
};

// Without a guard for dynamic initialisation, and read without a call into the dynamic linker.
extern constinit thread_local SmallLists small_lists __attribute__((tls_model("initial-exec")));

void* small_allocate_slow(std::size_t bytes);
void small_release_slow(void* block, std::size_t bytes) noexcept;

constexpr std::size_t small_class(std::size_t bytes) noexcept { return (bytes - 1) / kSmallStep; }

}  // namespace detail

// Memory for `bytes` (at least 1) bytes. Throws std::bad_alloc.
inline void* small_allocate(std::size_t bytes) {
#if !defined(TUTTI_SMALL_POOL_BYPASS)
  if (bytes - 1 < kSmallLimit) [[likely]] {
    const std::size_t index = detail::small_class(bytes);
    detail::SmallLists& lists = detail::small_lists;
    if (detail::SmallBlock* block = lists.head[index]; block != nullptr) [[likely]] {
      lists.head[index] = block->next;
      ++lists.room[index];
      return block;
    }
  }
#endif
  return detail::small_allocate_slow(bytes);
}

// Gives back a block, on any thread, with the size it was asked for.
inline void small_release(void* memory, std::size_t bytes) noexcept {
#if !defined(TUTTI_SMALL_POOL_BYPASS)
  if (bytes - 1 < kSmallLimit) [[likely]] {
    const std::size_t index = detail::small_class(bytes);
    detail::SmallLists& lists = detail::small_lists;
    if (lists.room[index] > 0) [[likely]] {
      --lists.room[index];
      auto* block = static_cast<detail::SmallBlock*>(memory);
      block->next = lists.head[index];
      lists.head[index] = block;
      return;
    }
  }
#endif
  detail::small_release_slow(memory, bytes);
}

// Chunks taken from the system and blocks that lie on the global lists: for tests.
struct SmallPoolStats {
  std::size_t chunks = 0;
  std::size_t global_blocks = 0;
};
SmallPoolStats small_pool_stats();

}  // namespace tutti
