// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/heap.hpp"

#include <algorithm>

#include "core/integers.hpp"

namespace tutti::comm {

namespace {
constexpr std::size_t kPage = 4096;
// A block holds a file descriptor, of which a process has a thousand or so.
constexpr std::size_t kUnusedBlocks = 32;
// More than a rank can have, since each of its blocks holds a descriptor of it.
constexpr std::size_t kBlocksOfOnePeer = 1024;
std::size_t rounded(std::size_t bytes) { return round_up(std::max<std::size_t>(bytes, 1), kPage); }
}  // namespace

void* SharedHeap::allocate(std::size_t bytes) {
  const std::size_t wanted = rounded(bytes);
  const std::lock_guard lock(mutex_);
  for (auto& [address, block] : blocks_) {
    if (block.used || block.segment.bytes() != wanted) continue;
    block.used = true;
    --unused_blocks_;
    return block.segment.data();
  }
  Block block{Segment::create(wanted), next_number_++, true, 0};
  std::byte* data = block.segment.data();
  blocks_.emplace(data, std::move(block));
  return data;
}

void SharedHeap::release(void* data) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<const std::byte*>(data));
  if (found == blocks_.end()) return;
  found->second.segment.discard_pages();
  found->second.used = false;
  found->second.released_at = ++releases_;
  if (++unused_blocks_ > kUnusedBlocks) drop_oldest_block();
}

void SharedHeap::drop_oldest_block() noexcept {
  auto oldest = blocks_.end();
  for (auto it = blocks_.begin(); it != blocks_.end(); ++it) {
    if (it->second.used) continue;
    if (oldest == blocks_.end() || it->second.released_at < oldest->second.released_at) oldest = it;
  }
  blocks_.erase(oldest);
  --unused_blocks_;
}

void SharedHeap::drop_oldest_peer_block() noexcept {
  peers_.erase(std::min_element(peers_.begin(), peers_.end(), [](const auto& a, const auto& b) {
    return a.second.used_at < b.second.used_at;
  }));
}

bool SharedHeap::find(const void* data, std::size_t bytes, MemoryReference& reference) const {
  const auto* address = static_cast<const std::byte*>(data);
  const std::lock_guard lock(mutex_);
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return false;
  --found;
  const Block& block = found->second;
  const auto offset = static_cast<std::size_t>(address - found->first);
  if (offset > block.segment.bytes() || bytes > block.segment.bytes() - offset) return false;
  reference = {block.number, block.segment.fd(), block.segment.bytes(), offset};
  return true;
}

std::byte* SharedHeap::map_peer(const Host& host, int local_index, const MemoryReference& reference) {
  const std::uint64_t key = static_cast<std::uint64_t>(local_index) << 32U | reference.block;
  const std::lock_guard lock(mutex_);
  auto found = peers_.find(key);
  if (found == peers_.end()) {
    if (peers_.size() >= kBlocksOfOnePeer * static_cast<std::size_t>(host.local_size()))
      drop_oldest_peer_block();
    Segment segment = Segment::open(host.pid_of(local_index), reference.fd, reference.block_bytes);
    found = peers_.emplace(key, PeerBlock{std::move(segment), 0}).first;
  }
  found->second.used_at = ++peer_uses_;
  return found->second.segment.data() + reference.offset;
}

}  // namespace tutti::comm
