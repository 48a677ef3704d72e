// SPDX-License-Identifier: Apache-2.0
#include "device/allocator.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "device/size_classes.hpp"
#include "support/errors.hpp"
#include "tutti/core/error.hpp"
#include "tutti/device/memory.hpp"

namespace tutti::memory {
namespace {

// Memory with a pattern that shows whether somebody else has written to it.
struct Piece {
  Allocation allocation{};
  std::size_t bytes = 0;
  unsigned char pattern = 0;

  static Piece make(std::size_t bytes, unsigned char pattern) {
    const Piece piece{allocate({}, bytes), bytes, pattern};
    std::memset(piece.allocation.data, pattern, bytes);
    return piece;
  }
  void release() const {
    const auto* data = static_cast<const unsigned char*>(allocation.data);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(data[i], pattern) << "byte " << i << " of " << bytes;
    memory::release({}, allocation.data, bytes, allocation.block);
  }
};

TEST(SizeClasses, HoldTheRequestAndWasteLittle) {
  for (std::size_t bytes = 1; bytes < (std::size_t{40} << 20U); bytes += 1 + bytes / 97) {
    const std::size_t rounded = rounded_size(bytes);
    ASSERT_GE(rounded, bytes);
    ASSERT_EQ(rounded % kAlignment, 0U) << bytes;
    const double waste = static_cast<double>(rounded - bytes);
    if (bytes <= 1024) {
      ASSERT_LT(waste, 64) << bytes;
    } else if (bytes <= kSmallLimit) {
      ASSERT_LT(waste, 0.20 * static_cast<double>(rounded)) << bytes;
    } else {
      ASSERT_LT(waste, 0.125 * static_cast<double>(rounded)) << bytes;
    }
    ASSERT_EQ(rounded_size(rounded), rounded);
    ASSERT_GE(bin_of(rounded_size(bytes + 1)), bin_of(rounded));
  }
  EXPECT_LT(bin_of(rounded_size(kGreatestRequest)), kBins);
}

TEST(SizeClasses, SmallOnesAreNumberedBySize) {
  for (int index = 0; index < kSmallClasses; ++index) {
    EXPECT_EQ(small_class(small_class_bytes(index)), index);
    if (index > 0) {
      EXPECT_EQ(small_class(small_class_bytes(index - 1) + 1), index);
    }
  }
  EXPECT_EQ(small_class(0), 0);
  EXPECT_EQ(small_class_bytes(kSmallClasses - 1), kSmallLimit);
}

TEST(Allocator, MemoryIsAlignedAndDistinct) {
  std::vector<Piece> pieces;
  unsigned char pattern = 1;
  for (const std::size_t bytes : std::initializer_list<std::size_t>{0, 1, 63, 64, 65, 1000, 1025, 5000, 16384,
                                                                    16385, 100000, 5000000}) {
    for (int i = 0; i < 3; ++i) pieces.push_back(Piece::make(bytes, pattern++));
  }
  for (const Piece& piece : pieces) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.allocation.data) % 64, 0U);
    piece.release();
  }
}

TEST(Allocator, FreedMemoryIsHandedOutAgain) {
  for (const std::size_t bytes : std::initializer_list<std::size_t>{100, 10000, 1000000}) {
    const Allocation first = allocate({}, bytes);
    release({}, first.data, bytes, first.block);
    const Allocation second = allocate({}, bytes);
    EXPECT_EQ(second.data, first.data) << bytes;
    release({}, second.data, bytes, second.block);
  }
}

TEST(Allocator, WarmRequestsDoNotGoToTheSystem) {
  const auto step = [] {
    std::vector<Piece> pieces;
    for (std::size_t bytes = 16; bytes < 3000000; bytes = bytes * 3 / 2) {
      for (int i = 0; i < 5; ++i) pieces.push_back(Piece::make(bytes, static_cast<unsigned char>(i)));
    }
    for (const Piece& piece : pieces) piece.release();
  };
  step();
  const MemoryStats before = memory_stats();
  for (int i = 0; i < 5; ++i) step();
  const MemoryStats after = memory_stats();
  EXPECT_EQ(after.system_allocations, before.system_allocations);
  EXPECT_EQ(after.reserved_bytes, before.reserved_bytes);
  EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
}

TEST(Allocator, FiguresAreExact) {
  const MemoryStats before = memory_stats();
  reset_peak_memory_stats();
  std::vector<Piece> pieces;
  for (int i = 0; i < 10; ++i) pieces.push_back(Piece::make(100, 1));   // 128 each
  for (int i = 0; i < 10; ++i) pieces.push_back(Piece::make(1100, 1));  // 1280 each
  for (const Piece& piece : pieces) piece.release();
  const MemoryStats after = memory_stats();
  EXPECT_EQ(after.allocations - before.allocations, 20);
  EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
  EXPECT_EQ(after.peak_allocated_bytes - before.allocated_bytes, 10 * (128 + 1280));
  EXPECT_GE(after.reserved_bytes, after.peak_allocated_bytes);
  reset_peak_memory_stats();
  EXPECT_EQ(memory_stats().peak_allocated_bytes, before.allocated_bytes);
}

TEST(Allocator, EmptyCacheReturnsWhatNobodyUses) {
  empty_cache();
  const MemoryStats before = memory_stats();
  std::vector<Piece> pieces;
  for (int i = 0; i < 3000; ++i) pieces.push_back(Piece::make(64, 7));
  for (int i = 0; i < 4; ++i) pieces.push_back(Piece::make(3000000, 9));
  const Piece kept = Piece::make(64, 8);
  for (const Piece& piece : pieces) piece.release();
  EXPECT_GT(memory_stats().reserved_bytes, before.reserved_bytes + 12000000);
  empty_cache();
  // One slab stays: it holds the block that is in use.
  EXPECT_LE(memory_stats().reserved_bytes, before.reserved_bytes + 65536);
  kept.release();
  empty_cache();
  EXPECT_EQ(memory_stats().reserved_bytes, before.reserved_bytes);
}

TEST(Allocator, ImpossibleRequestSaysWhatWasWantedInUseAndCached) {
  for (const std::size_t bytes : {std::size_t{1} << 60U, ~std::size_t{0}}) {
    try {
      allocate({}, bytes);
      FAIL() << "no exception";
    } catch (const MemoryError& error) {
      EXPECT_TRUE(tutti::testing::contains(
          error.what(), "out of memory on cpu: wanted " + std::to_string(bytes) + " bytes"));
      EXPECT_TRUE(tutti::testing::contains(error.what(), "in use by tensors"));
      EXPECT_TRUE(tutti::testing::contains(error.what(), "cached"));
    }
  }
}

TEST(Allocator, MemoryMayBeFreedByAnotherThread) {
  const MemoryStats before = memory_stats();
  constexpr int kRounds = 200;
  std::atomic<std::vector<Piece>*> box{nullptr};
  std::thread producer([&] {
    for (int round = 0; round < kRounds; ++round) {
      auto* batch = new std::vector<Piece>;
      for (int i = 0; i < 50; ++i) {
        batch->push_back(Piece::make(static_cast<std::size_t>(i) * 700, static_cast<unsigned char>(round)));
      }
      while (box.load() != nullptr) std::this_thread::yield();
      box.store(batch);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Piece>* batch = nullptr;
    while ((batch = box.exchange(nullptr)) == nullptr) std::this_thread::yield();
    for (const Piece& piece : *batch) piece.release();
    delete batch;
  }
  producer.join();
  const MemoryStats after = memory_stats();
  EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
  EXPECT_EQ(after.allocations - before.allocations, kRounds * 50);
  // What one thread frees comes back to the other: far less than the 3.5 GB that went through.
  EXPECT_LT(after.reserved_bytes - before.reserved_bytes, 16 << 20);
}

TEST(Allocator, ThreadsDoNotDisturbEachOther) {
  const MemoryStats before = memory_stats();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      std::minstd_rand random(t + 1);
      std::vector<Piece> pieces;
      for (int i = 0; i < 3000; ++i) {
        const std::size_t bytes = i % 50 == 0 ? random() % 300000 : random() % 3000;
        pieces.push_back(Piece::make(bytes, static_cast<unsigned char>(random())));
        if (pieces.size() > 40) {
          std::swap(pieces[random() % pieces.size()], pieces.back());
          pieces.back().release();
          pieces.pop_back();
        }
      }
      for (const Piece& piece : pieces) piece.release();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MemoryStats after = memory_stats();
  EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
  EXPECT_EQ(after.allocations - before.allocations, 4 * 3000);
  // The threads have ended: their caches went to the shared lists, which can be emptied.
  empty_cache();
  EXPECT_LE(memory_stats().reserved_bytes, before.reserved_bytes);
}

// Frees in a thread-local destructor that runs after that of the thread's cache.
TEST(Allocator, ThreadLocalDestructorsMayFree) {
  struct Late {
    Allocation allocation{};
    ~Late() {
      if (allocation.data != nullptr) release({}, allocation.data, 200, allocation.block);
    }
  };
  const MemoryStats before = memory_stats();
  std::thread([] {
    thread_local Late late;  // constructed before the cache, so destroyed after it
    late.allocation = allocate({}, 200);
    const Allocation other = allocate({}, 200);
    release({}, other.data, 200, other.block);
  }).join();
  EXPECT_EQ(memory_stats().allocated_bytes, before.allocated_bytes);
}

// Destroyed after main(): the process would crash, or the leak checker would report it.
struct StaticHolder {
  std::vector<Allocation> allocations;
  ~StaticHolder() {
    for (const Allocation& allocation : allocations) release({}, allocation.data, 300, allocation.block);
    const Allocation late = allocate({}, 300);
    release({}, late.data, 300, late.block);
  }
};
StaticHolder static_holder;

TEST(Allocator, StaticDestructorsMayAllocateAndFree) {
  for (int i = 0; i < 1000; ++i) static_holder.allocations.push_back(allocate({}, 300));
}

}  // namespace
}  // namespace tutti::memory
