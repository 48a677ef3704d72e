// SPDX-License-Identifier: Apache-2.0
// Sleeping on a word of memory, and the doorbell built on it. The word may lie in memory that processes share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tutti::comm {

// Sleeps while the word holds `expected`, at most `longest`. May return early for no reason.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::chrono::nanoseconds longest) noexcept;
void futex_wake_all(const std::atomic<std::uint32_t>& word) noexcept;

// Tells the processor that this is a waiting loop.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

// Where one process sleeps until others have news for it. Who has news changes its own word first, then rings; the bell
// costs a system call only if somebody sleeps.
class Doorbell {
 public:
  void ring() noexcept {
    // Orders the caller's news before the look at sleepers_; pairs with the fence in sleep_unless.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_relaxed) == 0) return;
    rings_.fetch_add(1, std::memory_order_release);
    futex_wake_all(rings_);
  }

  // Sleeps until the bell rings or `longest` has passed, unless ready() holds already.
  template <class Ready>
  void sleep_unless(const Ready& ready, std::chrono::nanoseconds longest) noexcept(noexcept(ready())) {
    const std::uint32_t seen = rings_.load(std::memory_order_acquire);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!ready()) futex_wait(rings_, seen, longest);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace tutti::comm
