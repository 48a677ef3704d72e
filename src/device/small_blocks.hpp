// SPDX-License-Identifier: Apache-2.0
// The CPU's small blocks: each thread keeps some free ones of each size class and exchanges them with shared
// lists in batches. Memory may be freed by another thread than it was allocated by. A free block's first
// bytes link it to the next one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "device/block_pool.hpp"
#include "device/size_classes.hpp"
#include "device/statistics.hpp"
#include "tutti/device/memory.hpp"

namespace tutti::memory {

struct FreeBlock {
  FreeBlock* next;
};

// One thread's free blocks. A thread that has no cache yet, or has it no more, uses one that is empty and
// full at once: nothing can be taken from it or put into it.
//
// The figures are written by the thread alone, with plain stores, and read by others. An atomic addition to
// the common ones would cost more than all else.
struct ThreadCache {
  std::array<FreeBlock*, kSmallClasses> heads{};
  std::array<std::uint32_t, kSmallClasses> counts{};
  std::atomic<std::int64_t> requests{0};
  std::atomic<std::int64_t> unreported{0};  // change of what is allocated
  std::atomic<std::int64_t> rise{0};        // greatest value of `unreported` since the last report
  ThreadCache* next = nullptr;              // of all threads
  ThreadCache* previous = nullptr;
};

class SmallBlocks {
 public:
  SmallBlocks(BlockPool& pool, Statistics& statistics) : pool_(pool), statistics_(statistics) {}
  SmallBlocks(const SmallBlocks&) = delete;
  SmallBlocks& operator=(const SmallBlocks&) = delete;

  // bytes: at most kSmallLimit.
  void* allocate(std::size_t bytes);
  // bytes: as asked for.
  void release(void* data, std::size_t bytes) noexcept;
  // Gives back slabs of which no block is in use, the calling thread's cache included. Blocks in other
  // threads' caches count as used.
  void release_cached() noexcept;
  // Reports the calling thread's figures: before others change the common ones, so that the peak is right.
  void report() noexcept;
  // Adds all threads' figures to those of the statistics.
  MemoryStats figures();
  // Makes the peak what is allocated now.
  void reset_peak();

 private:
  friend struct ThreadCacheOwner;

  struct Slab {
    std::byte* begin;
    std::size_t free;  // scratch of release_cached
  };
  struct alignas(64) SharedList {
    std::mutex mutex;
    FreeBlock* head = nullptr;
    std::vector<Slab> slabs;  // by address
  };

  void* allocate_slow(int index);
  void release_slow(FreeBlock* block, int index) noexcept;
  void attach_thread();
  void detach_thread(ThreadCache* cache) noexcept;
  void add_slab(int index);
  void count_taken(ThreadCache& cache, int index) noexcept;
  void count_released(ThreadCache& cache, int index) noexcept;
  void report(ThreadCache& cache) noexcept;
  void spill(ThreadCache& cache, int index, std::uint32_t keep) noexcept;
  void release_free_slabs(int index) noexcept;

  BlockPool& pool_;
  Statistics& statistics_;
  std::array<SharedList, kSmallClasses> lists_;
  std::mutex threads_mutex_;
  ThreadCache* threads_ = nullptr;
  std::int64_t requests_of_ended_threads_ = 0;
};

}  // namespace tutti::memory
