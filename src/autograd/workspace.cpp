// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "autograd/graph_task.hpp"

namespace tutti::autograd {

// The entry of the node, or the empty one where it would go.
std::size_t Workspace::position(const Node* node) const noexcept {
  const std::size_t mask = table_.size() - 1;
  // Nodes start on 64 bytes; the multiplication (2^64 / golden ratio) spreads neighbours.
  const std::uint64_t hash = (reinterpret_cast<std::uintptr_t>(node) >> 6) * 0x9E3779B97F4A7C15ULL;
  std::size_t i = static_cast<std::size_t>(hash >> 32) & mask;
  while (table_[i].call == call_ && table_[i].node != node) i = (i + 1) & mask;
  return i;
}

std::uint32_t Workspace::slot_of(Node* node) {
  if (2 * (slots.size() + 1) > table_.size()) grow();
  Entry& entry = table_[position(node)];
  if (entry.call != call_) {
    entry = {node, static_cast<std::uint32_t>(slots.size()), call_};
    slots.emplace_back(node);
  }
  return entry.slot;
}

std::uint32_t Workspace::find(const Node* node) const noexcept {
  if (table_.empty()) return kNone;
  const Entry& entry = table_[position(node)];
  return entry.call == call_ ? entry.slot : kNone;
}

void Workspace::grow() {
  constexpr std::size_t kLeast = 64;
  table_.assign(std::max(kLeast, 2 * table_.size()), {});
  for (std::uint32_t i = 0; i < slots.size(); ++i)
    table_[position(slots[i].node)] = {slots[i].node, i, call_};
}

void Workspace::clear() noexcept {
  constexpr std::size_t kKeptSlots = 1 << 16;
  heap.clear();
  slots.clear();
  edge_slots.clear();
  if (slots.capacity() > kKeptSlots) {
    std::vector<Slot>().swap(slots);
    std::vector<std::uint32_t>().swap(edge_slots);
    std::vector<std::uint32_t>().swap(heap);
    std::vector<Entry>().swap(table_);
  }
  if (++call_ == 0) {  // entries of old calls would count again
    std::fill(table_.begin(), table_.end(), Entry());
    call_ = 1;
  }
}

}  // namespace tutti::autograd
