// SPDX-License-Identifier: Apache-2.0
// Memory for the short arrays of one kernel call, such as one number a channel: pieces of this thread's workspace, front to
// back. What doesn't fit comes from the heap, once: the next call finds a workspace that is large enough.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory_resource>

#include "core/integers.hpp"
#include "kernels/cpu/onednn/workspace.hpp"

namespace tutti::cpu {

// One at a time on a thread, and used on that thread alone.
class CallMemory final : public std::pmr::memory_resource {
 public:
  CallMemory()
      : size_(needed()), begin_(static_cast<char*>(onednn::workspace(onednn::Purpose::kCall, size_))) {}
  ~CallMemory() override { needed() = std::max(needed(), used_); }
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;

 private:
  static std::size_t& needed() noexcept {
    thread_local std::size_t most = 4096;
    return most;
  }
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    const std::size_t at = used_;
    used_ += round_up(bytes, onednn::kAlignment);
    if (used_ <= size_) return begin_ + at;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    const std::less<const char*> before;
    const auto* place = static_cast<const char*>(memory);
    if (!before(place, begin_) && before(place, begin_ + size_)) return;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  std::size_t size_;
  std::size_t used_ = 0;
  char* begin_;
};

}  // namespace tutti::cpu
