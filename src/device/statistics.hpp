// SPDX-License-Identifier: Apache-2.0
// The figures of one device's allocator, as atomics.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tutti::memory {

struct Statistics {
  // What tensors hold, but for what threads' caches have not reported yet.
  alignas(64) std::atomic<std::int64_t> allocated{0};
  std::atomic<std::int64_t> peak{0};
  alignas(64) std::atomic<std::int64_t> reserved{0};
  std::atomic<std::int64_t> system_allocations{0};
  std::atomic<std::int64_t> requests{0};  // without those of threads' caches

  // `change` of what is allocated, on the way to which it had risen by `rise`.
  void report(std::int64_t change, std::int64_t rise) noexcept {
    const std::int64_t highest = allocated.fetch_add(change, std::memory_order_relaxed) + rise;
    std::int64_t seen = peak.load(std::memory_order_relaxed);
    while (highest > seen && !peak.compare_exchange_weak(seen, highest, std::memory_order_relaxed)) {
    }
  }
  void take(std::size_t bytes) noexcept {
    report(static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(bytes));
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
