// SPDX-License-Identifier: Apache-2.0
// The figures of one device's allocator, as atomics.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tutti::memory {

struct Statistics {
  // What tensors hold changes with each request: on a cache line of its own.
  alignas(64) std::atomic<std::int64_t> allocated{0};
  std::atomic<std::int64_t> peak{0};
  alignas(64) std::atomic<std::int64_t> reserved{0};
  std::atomic<std::int64_t> system_allocations{0};
  std::atomic<std::int64_t> requests{0};  // without those that threads' caches have counted

  void take(std::size_t bytes) noexcept {
    const auto signed_bytes = static_cast<std::int64_t>(bytes);
    const std::int64_t now = allocated.fetch_add(signed_bytes, std::memory_order_relaxed) + signed_bytes;
    std::int64_t seen = peak.load(std::memory_order_relaxed);
    while (now > seen && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
    }
  }
  void give_back(std::size_t bytes) noexcept {
    allocated.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  }
  void reserve(std::size_t bytes) noexcept {
    reserved.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    system_allocations.fetch_add(1, std::memory_order_relaxed);
  }
  void unreserve(std::size_t bytes) noexcept {
    reserved.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  }
};

}  // namespace tutti::memory
