// SPDX-License-Identifier: Apache-2.0
// Memory of ProcessGroup::allocate, and peers' memory of that kind as this process sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "comm/host.hpp"
#include "comm/shm/segment.hpp"

namespace tutti::comm {

// A place in a block, as other processes of this host can find it.
struct MemoryReference {
  std::uint32_t block = 0;  // unique in its process, never used twice
  std::int32_t fd = -1;
  std::uint64_t block_bytes = 0;
  std::uint64_t offset = 0;
};

class SharedHeap {
 public:
  SharedHeap() = default;
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  // Page-aligned. MemoryError if the system refuses.
  void* allocate(std::size_t bytes);
  // The block is kept for the next allocation of its size, without pages; the last few that were released are.
  void release(void* data) noexcept;
  // Fills `reference` if the bytes lie in one of this process's blocks.
  bool find(const void* data, std::size_t bytes, MemoryReference& reference) const;
  // Where a local rank's memory is mapped here; maps it on first sight. Good until the next operation: mappings that were
  // not used for long make room for others.
  std::byte* map_peer(const Host& host, int local_index, const MemoryReference& reference);

 private:
  struct Block {
    Segment segment;
    std::uint32_t number = 0;
    bool used = false;
    std::uint64_t released_at = 0;  // in releases
  };
  struct PeerBlock {
    Segment segment;
    std::uint64_t used_at = 0;  // in calls of map_peer
  };
  void drop_oldest_block() noexcept;
  void drop_oldest_peer_block() noexcept;

  mutable std::mutex mutex_;
  std::map<const std::byte*, Block> blocks_;  // by first address
  std::size_t unused_blocks_ = 0;
  std::uint64_t releases_ = 0;
  std::uint32_t next_number_ = 0;
  std::unordered_map<std::uint64_t, PeerBlock> peers_;  // by local index and block
  std::uint64_t peer_uses_ = 0;
};

}  // namespace tutti::comm
