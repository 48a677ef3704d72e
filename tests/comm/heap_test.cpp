// SPDX-License-Identifier: Apache-2.0
// Memory of ProcessGroup::allocate, as its owner and as another rank of the host sees it: here both are this process.
#include "comm/shm/heap.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "comm/alone.hpp"
#include "comm/host.hpp"

namespace tutti::testing {
namespace {

int mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("memfd:tutti") != std::string::npos ? 1 : 0;
  return count;
}

TEST(SharedHeap, GivesABlockOfTheSameSizeAgain) {
  comm::SharedHeap heap;
  void* first = heap.allocate(5000);
  EXPECT_NE(heap.allocate(5000), first);
  heap.release(first);
  EXPECT_EQ(heap.allocate(8000), first);  // two pages both
}

TEST(SharedHeap, ReleasedBlockReadsAsZero) {
  comm::SharedHeap heap;
  auto* data = static_cast<unsigned char*>(heap.allocate(4096));
  std::memset(data, 7, 4096);
  heap.release(data);
  ASSERT_EQ(heap.allocate(4096), data);
  EXPECT_EQ(data[0], 0);
  EXPECT_EQ(data[4095], 0);
}

TEST(SharedHeap, FindsWhatLiesInsideABlock) {
  comm::SharedHeap heap;
  auto* data = static_cast<std::byte*>(heap.allocate(4096));
  comm::MemoryReference reference;
  EXPECT_TRUE(heap.find(data + 100, 3996, reference));
  EXPECT_EQ(reference.offset, 100U);
  EXPECT_FALSE(heap.find(data + 100, 3997, reference));
  int elsewhere = 0;
  EXPECT_FALSE(heap.find(&elsewhere, sizeof elsewhere, reference));
}

// A training loop with changing sizes, as long as one likes.
TEST(SharedHeap, KeepsFewMappingsOfMemoryThatIsGone) {
  Alone alone;
  const auto host = comm::Host::create(alone, Deadline(5));
  ASSERT_TRUE(host->shares_memory()) << host->reason();
  comm::SharedHeap owner;
  comm::SharedHeap peer;
  const int before = mappings();
  for (std::size_t pages = 1; pages <= 2000; ++pages) {
    auto* data = static_cast<std::byte*>(owner.allocate(pages * 4096));
    data[7] = static_cast<std::byte>(pages);
    comm::MemoryReference reference;
    ASSERT_TRUE(owner.find(data, 8, reference));
    ASSERT_EQ(peer.map_peer(*host, 0, reference)[7], static_cast<std::byte>(pages));
    owner.release(data);
  }
  EXPECT_LE(mappings() - before, 32 + 1024);
}

}  // namespace
}  // namespace tutti::testing
