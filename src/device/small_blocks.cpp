// SPDX-License-Identifier: Apache-2.0
#include "device/small_blocks.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "device/allocator.hpp"

namespace tutti::memory {

namespace {

constexpr std::size_t kSlabBytes = std::size_t{64} << 10U;
constexpr std::uint32_t kFull = 0xffffffffU;

constexpr std::size_t blocks_in_slab(int index) { return kSlabBytes / small_class_bytes(index); }

// A thread keeps at most this many free blocks of a class: 64 KiB, but 8 to 256 blocks.
constexpr std::array<std::uint32_t, kSmallClasses> kLimits = [] {
  std::array<std::uint32_t, kSmallClasses> limits{};
  for (int i = 0; i < kSmallClasses; ++i) {
    limits[static_cast<std::size_t>(i)] =
        static_cast<std::uint32_t>(std::clamp<std::size_t>(blocks_in_slab(i), 8, 256));
  }
  return limits;
}();

constexpr std::array<std::uint32_t, kSmallClasses> all_full() {
  std::array<std::uint32_t, kSmallClasses> counts{};
  counts.fill(kFull);
  return counts;
}

// For threads before their first and after their last use of a cache.
constinit ThreadCache no_cache_yet{.counts = all_full()};
constinit ThreadCache no_cache_any_more{.counts = all_full()};

// Initial-exec: one load instead of a call when the library is shared. Eight bytes of the loader's reserve.
[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadCache* thread_cache = &no_cache_yet;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

// A thread reports its figures when they have changed by this much.
constexpr std::int64_t kReportBytes = 64 << 10;

// Adds to a figure that its thread alone writes.
std::int64_t add(std::atomic<std::int64_t>& figure, std::int64_t change) noexcept {
  const std::int64_t sum = figure.load(std::memory_order_relaxed) + change;
  figure.store(sum, std::memory_order_relaxed);
  return sum;
}

bool is_of_a_thread(const ThreadCache* cache) {
  return cache != &no_cache_yet && cache != &no_cache_any_more;
}

}  // namespace

// Takes the cache apart when its thread ends. Blocks that later destructors free go to the shared lists.
struct ThreadCacheOwner {
  SmallBlocks* blocks = nullptr;
  std::unique_ptr<ThreadCache> cache;
  ~ThreadCacheOwner() {
    if (cache == nullptr) return;
    thread_cache = &no_cache_any_more;
    blocks->detach_thread(cache.get());
  }
};

inline void SmallBlocks::count_taken(ThreadCache& cache, int index) noexcept {
  add(cache.requests, 1);
  const std::int64_t unreported = add(cache.unreported, static_cast<std::int64_t>(small_class_bytes(index)));
  if (unreported > cache.rise.load(std::memory_order_relaxed)) {
    cache.rise.store(unreported, std::memory_order_relaxed);
    if (unreported > kReportBytes) report(cache);
  }
}

inline void SmallBlocks::count_released(ThreadCache& cache, int index) noexcept {
  if (add(cache.unreported, -static_cast<std::int64_t>(small_class_bytes(index))) < -kReportBytes)
    report(cache);
}

void* SmallBlocks::allocate(std::size_t bytes) {
  const int index = small_class(bytes);
  ThreadCache* cache = thread_cache;
  FreeBlock* block = cache->heads[at(index)];
  if (block == nullptr) [[unlikely]]
    return allocate_slow(index);
  cache->heads[at(index)] = block->next;
  --cache->counts[at(index)];
  count_taken(*cache, index);
  return block;
}

void SmallBlocks::release(void* data, std::size_t bytes) noexcept {
  const int index = small_class(bytes);
  auto* block = static_cast<FreeBlock*>(data);
  ThreadCache* cache = thread_cache;
  if (cache->counts[at(index)] >= kLimits[at(index)]) [[unlikely]] {
    release_slow(block, index);
    return;
  }
  block->next = cache->heads[at(index)];
  cache->heads[at(index)] = block;
  ++cache->counts[at(index)];
  count_released(*cache, index);
}

void SmallBlocks::attach_thread() {
  thread_local ThreadCacheOwner owner;
  owner.blocks = this;
  owner.cache = std::make_unique<ThreadCache>();
  {
    const std::scoped_lock lock(threads_mutex_);
    owner.cache->next = threads_;
    if (threads_ != nullptr) threads_->previous = owner.cache.get();
    threads_ = owner.cache.get();
  }
  thread_cache = owner.cache.get();
}

void SmallBlocks::detach_thread(ThreadCache* cache) noexcept {
  for (int index = 0; index < kSmallClasses; ++index) spill(*cache, index, 0);
  report(*cache);
  const std::scoped_lock lock(threads_mutex_);
  requests_of_ended_threads_ += cache->requests.load(std::memory_order_relaxed);
  (cache->previous != nullptr ? cache->previous->next : threads_) = cache->next;
  if (cache->next != nullptr) cache->next->previous = cache->previous;
}

// Fills half of the thread's cache, so that neither the next request nor the next release comes here again.
void* SmallBlocks::allocate_slow(int index) {
  if (thread_cache == &no_cache_yet) attach_thread();
  ThreadCache* cache = thread_cache == &no_cache_any_more ? nullptr : thread_cache;
  const std::uint32_t wanted = cache != nullptr ? std::max(kLimits[at(index)] / 2, 1U) : 1U;
  SharedList& list = lists_[at(index)];
  FreeBlock* block = nullptr;
  while (block == nullptr) {
    {
      const std::scoped_lock lock(list.mutex);
      if (list.head != nullptr) {
        block = list.head;
        list.head = block->next;
        for (std::uint32_t count = 1; count < wanted && list.head != nullptr; ++count) {
          FreeBlock* next = list.head;
          list.head = next->next;
          next->next = cache->heads[at(index)];
          cache->heads[at(index)] = next;
          ++cache->counts[at(index)];
        }
      }
    }
    if (block == nullptr) add_slab(index);
  }
  if (cache != nullptr) {
    count_taken(*cache, index);
  } else {
    statistics_.requests.fetch_add(1, std::memory_order_relaxed);
    statistics_.take(small_class_bytes(index));
  }
  return block;
}

void SmallBlocks::release_slow(FreeBlock* block, int index) noexcept {
  if (is_of_a_thread(thread_cache)) {
    spill(*thread_cache, index, kLimits[at(index)] / 2);
    count_released(*thread_cache, index);
  } else {
    statistics_.give_back(small_class_bytes(index));
  }
  SharedList& list = lists_[at(index)];
  const std::scoped_lock lock(list.mutex);
  block->next = list.head;
  list.head = block;
}

// Moves a class's blocks beyond `keep` from the thread's cache to the shared list.
void SmallBlocks::spill(ThreadCache& cache, int index, std::uint32_t keep) noexcept {
  SharedList& list = lists_[at(index)];
  const std::scoped_lock lock(list.mutex);
  while (cache.counts[at(index)] > keep) {
    FreeBlock* block = cache.heads[at(index)];
    cache.heads[at(index)] = block->next;
    --cache.counts[at(index)];
    block->next = list.head;
    list.head = block;
  }
}

void SmallBlocks::add_slab(int index) {
  auto* begin = static_cast<std::byte*>(pool_.system_allocate(kSlabBytes));
  SharedList& list = lists_[at(index)];
  const std::scoped_lock lock(list.mutex);
  const auto place =
      std::upper_bound(list.slabs.begin(), list.slabs.end(), begin,
                       [](const std::byte* data, const Slab& slab) { return data < slab.begin; });
  list.slabs.insert(place, {.begin = begin, .free = 0});
  // From the back, so that they are handed out from the front.
  for (std::size_t i = blocks_in_slab(index); i-- > 0;) {
    auto* block = ::new (static_cast<void*>(begin + i * small_class_bytes(index))) FreeBlock{list.head};
    list.head = block;
  }
}

void SmallBlocks::release_free_slabs(int index) noexcept {
  SharedList& list = lists_[at(index)];
  const std::scoped_lock lock(list.mutex);
  const auto slab_of = [&](FreeBlock* block) -> Slab& {
    const auto* data = reinterpret_cast<const std::byte*>(block);
    return *std::prev(
        std::upper_bound(list.slabs.begin(), list.slabs.end(), data,
                         [](const std::byte* wanted, const Slab& slab) { return wanted < slab.begin; }));
  };
  for (Slab& slab : list.slabs) slab.free = 0;
  for (FreeBlock* block = list.head; block != nullptr; block = block->next) ++slab_of(block).free;
  for (FreeBlock** link = &list.head; *link != nullptr;) {
    if (slab_of(*link).free == blocks_in_slab(index)) {
      *link = (*link)->next;
    } else {
      link = &(*link)->next;
    }
  }
  std::erase_if(list.slabs, [&](const Slab& slab) {
    if (slab.free != blocks_in_slab(index)) return false;
    pool_.system_release(slab.begin, kSlabBytes);
    return true;
  });
}

void SmallBlocks::release_cached() noexcept {
  ThreadCache* cache = thread_cache;
  const bool has_cache = is_of_a_thread(cache);
  for (int index = 0; index < kSmallClasses; ++index) {
    if (has_cache) spill(*cache, index, 0);
    release_free_slabs(index);
  }
}

// Under the lock, so that figures() finds an amount either here or there.
void SmallBlocks::report(ThreadCache& cache) noexcept {
  const std::scoped_lock lock(threads_mutex_);
  statistics_.report(cache.unreported.load(std::memory_order_relaxed),
                     cache.rise.load(std::memory_order_relaxed));
  cache.unreported.store(0, std::memory_order_relaxed);
  cache.rise.store(0, std::memory_order_relaxed);
}

void SmallBlocks::report() noexcept {
  ThreadCache* cache = thread_cache;
  if (is_of_a_thread(cache) && (cache->unreported.load(std::memory_order_relaxed) != 0 ||
                                cache->rise.load(std::memory_order_relaxed) != 0)) {
    report(*cache);
  }
}

MemoryStats SmallBlocks::figures() {
  const std::scoped_lock lock(threads_mutex_);
  MemoryStats stats;
  stats.allocations = statistics_.requests.load(std::memory_order_relaxed) + requests_of_ended_threads_;
  stats.allocated_bytes = statistics_.allocated.load(std::memory_order_relaxed);
  std::int64_t rise = 0;  // what the thread that rose most has come down from
  for (const ThreadCache* cache = threads_; cache != nullptr; cache = cache->next) {
    const std::int64_t unreported = cache->unreported.load(std::memory_order_relaxed);
    stats.allocations += cache->requests.load(std::memory_order_relaxed);
    stats.allocated_bytes += unreported;
    rise = std::max(rise, cache->rise.load(std::memory_order_relaxed) - unreported);
  }
  stats.peak_allocated_bytes =
      std::max(statistics_.peak.load(std::memory_order_relaxed), stats.allocated_bytes + rise);
  stats.reserved_bytes = statistics_.reserved.load(std::memory_order_relaxed);
  stats.system_allocations = statistics_.system_allocations.load(std::memory_order_relaxed);
  return stats;
}

void SmallBlocks::reset_peak() {
  const std::scoped_lock lock(threads_mutex_);
  std::int64_t allocated = statistics_.allocated.load(std::memory_order_relaxed);
  for (ThreadCache* cache = threads_; cache != nullptr; cache = cache->next) {
    const std::int64_t unreported = cache->unreported.load(std::memory_order_relaxed);
    cache->rise.store(unreported, std::memory_order_relaxed);
    allocated += unreported;
  }
  statistics_.peak.store(allocated, std::memory_order_relaxed);
}

}  // namespace tutti::memory
