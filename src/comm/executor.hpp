// SPDX-License-Identifier: Apache-2.0
// The one ordered queue of a process, and the communication thread that works it off.
//
// Whoever holds run_mutex_ runs entries, in order. That is the communication thread while others compute; and a thread that
// waits for an entry which nobody has begun, since handing it over would cost two context switches. For the same reason the
// communication thread, where it shares its only core with that thread, lets it go first: it begins within 2 ms. So MPI is called
// by one thread at a time, but not always the same (MPI_THREAD_SERIALIZED).
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/futex.hpp"
#include "comm/work_state.hpp"

namespace tutti::comm {

class Executor {
 public:
  // `doorbell` is where this process sleeps; it outlives the executor.
  explicit Executor(Doorbell& doorbell);
  ~Executor();  // as stop()
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Appends to the queue. From inside an entry (a then-function that issues a collective): runs it at once.
  void submit(std::shared_ptr<detail::WorkState> work);
  // The same on the process's executor. A world of one has none, and all that came before is done: runs it at once.
  static void submit_or_run(std::shared_ptr<detail::WorkState> work);
  // Blocks until the work is done; does not throw its failure.
  void wait(detail::WorkState& work);
  // Lets started sends and receives move. Called by who runs an entry, while it waits.
  void progress_point_to_point() noexcept;
  // How long a wait inside an entry may sleep, given the sends and receives under way.
  std::chrono::nanoseconds longest_sleep() const noexcept;
  // True if somebody blocks until an entry is done, so that spinning takes nothing from computing.
  bool somebody_waits() const noexcept { return waiting_.load(std::memory_order_relaxed) > 0; }
  static bool on_communication_thread() noexcept;

  // The process's, while an Environment of several ranks lives; else null.
  static Executor* current() noexcept;
  static void set_current(Executor* executor) noexcept;

  // Works off the queue and ends the thread. Started sends and receives have a moment left to finish; then they fail.
  void stop() noexcept;

 private:
  // From a nap the thread looks up by itself, soon; from sleep it must be woken.
  enum class Rest : std::uint8_t { kNone, kNap, kSleep };

  void thread_main() noexcept;
  void move_messages() noexcept;
  void give_up_point_to_point() noexcept;
  void run_entries(const detail::WorkState* until) noexcept;
  std::shared_ptr<detail::WorkState> pop();
  void execute(std::shared_ptr<detail::WorkState> work) noexcept;
  void wait_inside(detail::WorkState& work);
  void wake_thread() noexcept;
  bool has_entries();

  Doorbell& doorbell_;
  std::mutex queue_mutex_;
  std::deque<std::shared_ptr<detail::WorkState>> queue_;
  std::mutex run_mutex_;
  std::vector<std::shared_ptr<detail::WorkState>> point_to_point_;  // started and not done; under run_mutex_
  std::atomic<std::size_t> point_to_point_count_{0};
  std::atomic<int> waiting_{0};
  std::atomic<std::uint32_t> wakes_{0};  // the word on which the idle thread sleeps
  std::atomic<Rest> thread_rests_{Rest::kNone};
  std::atomic<bool> stopping_{false};
  bool thread_has_own_core_ = false;  // a waiter may spin without taking the communication thread's time
  std::thread thread_;
};

}  // namespace tutti::comm
