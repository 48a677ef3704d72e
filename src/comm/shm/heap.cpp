// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/heap.hpp"

#include <algorithm>

namespace tutti::comm {

namespace {
constexpr std::size_t kPage = 4096;
std::size_t rounded(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
}
}  // namespace

void* SharedHeap::allocate(std::size_t bytes) {
  const std::size_t wanted = rounded(bytes);
  const std::lock_guard lock(mutex_);
  for (auto& [address, block] : blocks_) {
    if (block.used || block.segment.bytes() != wanted) continue;
    block.used = true;
    return block.segment.data();
  }
  Block block{Segment::create(wanted), next_number_++, true};
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
    Segment segment = Segment::open(host.pid_of(local_index), reference.fd, reference.block_bytes);
    found = peers_.emplace(key, std::move(segment)).first;
  }
  return found->second.data() + reference.offset;
}

}  // namespace tutti::comm
