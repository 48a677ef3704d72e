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
// costs a system call only if somebody listens.
class Doorbell {
 public:
  void ring() noexcept {
    // Orders the caller's news before the look at listeners_; pairs with the fence in Listener.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (listeners_.load(std::memory_order_relaxed) == 0) return;
    rings_.fetch_add(1, std::memory_order_release);
    futex_wake_all(rings_);
  }

  // One that may sleep: it arms, then looks whether there is news, then sleeps. A ring after arm() ends the sleep.
  class Listener {
   public:
    explicit Listener(Doorbell& bell) noexcept : bell_(bell) {
      bell_.listeners_.fetch_add(1, std::memory_order_seq_cst);
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
    ~Listener() { bell_.listeners_.fetch_sub(1, std::memory_order_relaxed); }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    void arm() noexcept { seen_ = bell_.rings_.load(std::memory_order_acquire); }
    void sleep(std::chrono::nanoseconds longest) noexcept { futex_wait(bell_.rings_, seen_, longest); }

   private:
    Doorbell& bell_;
    std::uint32_t seen_ = 0;
  };

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> listeners_{0};
};

}  // namespace tutti::comm
