// SPDX-License-Identifier: Apache-2.0
#include "core/small_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace tutti {
namespace {

constexpr std::size_t kBlocksInAChunk = 32;

// No thread that still lives has used the pool: all blocks that were ever cut lie on the global lists.
void expect_all_blocks_are_back() {
  const SmallPoolStats stats = small_pool_stats();
  EXPECT_EQ(stats.global_blocks, stats.chunks * kBlocksInAChunk);
}

// The main thread keeps out of the pool, so that the counts above are exact.
template <class Body>
void on_another_thread(const Body& body) {
  std::thread(body).join();
}

TEST(SmallPool, BlocksAreAlignedDistinctAndLargeEnough) {
  on_another_thread([] {
    std::vector<std::pair<unsigned char*, std::size_t>> blocks;
    for (std::size_t bytes = 1; bytes <= 1200; ++bytes) {
      auto* block = static_cast<unsigned char*>(small_allocate(bytes));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U) << bytes;
      std::memset(block, static_cast<int>(bytes % 251), bytes);
      blocks.emplace_back(block, bytes);
    }
    for (const auto& [block, bytes] : blocks) {
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(block[i], bytes % 251) << bytes;
      small_release(block, bytes);
    }
  });
  expect_all_blocks_are_back();
}

#if !defined(TUTTI_SMALL_POOL_BYPASS)
TEST(SmallPool, ReleasedBlockIsTheNextOneGivenOut) {
  on_another_thread([] {
    void* first = small_allocate(100);
    small_release(first, 100);
    void* second = small_allocate(128);  // the same class of 65 to 128 bytes
    EXPECT_EQ(second, first);
    small_release(second, 128);
  });
}

TEST(SmallPool, MemoryStopsGrowingOnceWarm) {
  const auto work = [] {
    std::vector<void*> blocks(1000);
    for (int repeat = 0; repeat < 10; ++repeat) {
      for (void*& block : blocks) block = small_allocate(200);
      for (void* block : blocks) small_release(block, 200);
    }
  };
  on_another_thread(work);
  const std::size_t chunks = small_pool_stats().chunks;
  for (int repeat = 0; repeat < 5; ++repeat) on_another_thread(work);
  EXPECT_EQ(small_pool_stats().chunks, chunks);
}

TEST(SmallPool, ThreadThatOnlyReleasesKeepsABoundedNumber) {
  const auto rounds = [](int count) {
    std::vector<void*> blocks(500);
    for (int round = 0; round < count; ++round) {
      on_another_thread([&] {
        for (void*& block : blocks) block = small_allocate(300);
      });
      for (void* block : blocks) small_release(block, 300);
    }
  };
  std::size_t after_two = 0;
  on_another_thread([&] {  // one releasing thread for all rounds
    rounds(2);
    after_two = small_pool_stats().chunks;
    rounds(20);
  });
  EXPECT_EQ(small_pool_stats().chunks, after_two) << "its overflow feeds the allocating threads";
  expect_all_blocks_are_back();
}
#endif

struct Parcel {
  unsigned char* memory;
  std::size_t bytes;
  unsigned char mark;
};

TEST(SmallPool, BlocksWanderBetweenThreadsUnharmed) {
  std::mutex mutex;
  std::vector<Parcel> shared;
  const auto check_and_release = [](const Parcel& parcel) {
    for (std::size_t i = 0; i < parcel.bytes; ++i) ASSERT_EQ(parcel.memory[i], parcel.mark);
    small_release(parcel.memory, parcel.bytes);
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 20000; ++i) {
        Parcel parcel{nullptr, 1 + random() % 1100, static_cast<unsigned char>(random())};
        parcel.memory = static_cast<unsigned char*>(small_allocate(parcel.bytes));
        std::memset(parcel.memory, parcel.mark, parcel.bytes);
        const std::lock_guard lock(mutex);
        shared.push_back(parcel);
        if (shared.size() > 500) {
          std::swap(shared[random() % shared.size()], shared.back());
          check_and_release(shared.back());
          shared.pop_back();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  on_another_thread([&] {
    for (const Parcel& parcel : shared) check_and_release(parcel);
  });
  expect_all_blocks_are_back();
}

struct PoolUserAtThreadEnd {
  void* kept = nullptr;
  ~PoolUserAtThreadEnd() {
    small_release(kept, 64);
    void* more = small_allocate(64);
    std::memset(more, 1, 64);
    small_release(more, 64);
  }
};

TEST(SmallPool, WorksInThreadLocalDestructorsThatRunAfterItsOwn) {
  on_another_thread([] {
    thread_local PoolUserAtThreadEnd user;  // constructed before the thread's lists, so destroyed after them
    user.kept = small_allocate(64);
  });
  expect_all_blocks_are_back();
}

// Destroyed after main, when other static objects are gone.
struct PoolUserAtExit {
  void* kept = nullptr;
  ~PoolUserAtExit() {
    if (kept != nullptr) small_release(kept, 64);
    small_release(small_allocate(64), 64);
  }
};

TEST(SmallPool, WorksInStaticDestructors) {
  static PoolUserAtExit user;
  on_another_thread([] { user.kept = small_allocate(64); });
}

}  // namespace
}  // namespace tutti
