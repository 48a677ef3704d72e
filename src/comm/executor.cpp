// SPDX-License-Identifier: Apache-2.0
#include "comm/executor.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "comm/ending.hpp"
#include "core/parallel_for.hpp"
#include "core/start_thread.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"
#include "tutti/core/phase.hpp"
#include "tutti/core/trace.hpp"

namespace tutti::comm {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kWaiterSpins = 20us;
// Bounds what a lost wake-up could cost; none is known.
constexpr auto kLongestSleep = 100ms;
constexpr auto kLongestIdle = 10s;
// How late the thread may begin what nobody waits for, where it shares its core with who submits. Who submits mostly waits
// soon and then does the work itself; to begin at once would only take the core from it, at the cost of two switches.
constexpr auto kNap = 2ms;
// Naps without news before the thread sleeps until it is woken.
constexpr int kLongestNaps = 25;
// For sends and receives that are under way when the Environment ends. All ranks have come to their end by then, so what
// has a counterpart is moving already.
constexpr auto kLastTransfers = 2s;

std::atomic<Executor*> current_executor{nullptr};
constinit thread_local bool thread_is_communication = false;
constinit thread_local int thread_entry_depth = 0;  // entries that this thread is inside of

int processors_of_this_thread() noexcept {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// Nobody may be left to wait for it, so that its error would never be seen.
void warn_of_lost(const std::exception_ptr& error) noexcept {
  if (!logging::enabled(logging::Level::kWarning)) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    logging::write(logging::Level::kWarning, failure.what());
  } catch (...) {
    logging::write(logging::Level::kWarning, "a send or receive has failed while the Environment ended");
  }
}

}  // namespace

Executor* Executor::current() noexcept { return current_executor.load(std::memory_order_acquire); }
void Executor::set_current(Executor* executor) noexcept {
  current_executor.store(executor, std::memory_order_release);
}
bool Executor::on_communication_thread() noexcept { return thread_is_communication; }

Executor::Executor(Doorbell& doorbell)
    : doorbell_(doorbell), thread_has_own_core_(processors_of_this_thread() > 1) {
  thread_ = start_thread([this] { thread_main(); });
}

Executor::~Executor() { stop(); }

void Executor::stop() noexcept {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  wake_thread();
  thread_.join();
}

void Executor::submit(std::shared_ptr<detail::WorkState> work) {
  if (thread_entry_depth > 0) {
    execute(std::move(work));
    return;
  }
  const bool urgent = work->as_point_to_point() != nullptr || work->needs_communication_thread();
  {
    const std::lock_guard lock(queue_mutex_);
    queue_.push_back(std::move(work));
  }
  if (urgent || thread_rests_.load(std::memory_order_seq_cst) != Rest::kNap) {
    wake_thread();
  } else {
    wakes_.fetch_add(1, std::memory_order_seq_cst);
  }
}

void Executor::submit_or_run(std::shared_ptr<detail::WorkState> work) {
  if (Executor* executor = current(); executor != nullptr) {
    TUTTI_CHECK(!is_forked_child(), CommError,
                "this process was forked by a rank and is none itself: it can't communicate");
    executor->submit(std::move(work));
    return;
  }
  std::exception_ptr error;
  try {
    work->run();
  } catch (...) {
    error = std::current_exception();
  }
  work->release();
  work->finish(std::move(error));
}

void Executor::wake_thread() noexcept {
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  if (thread_rests_.load(std::memory_order_seq_cst) != Rest::kNone) futex_wake_all(wakes_);
  // The thread sleeps at the doorbell while sends and receives are under way.
  if (point_to_point_count_.load(std::memory_order_seq_cst) != 0) doorbell_.ring();
}

bool Executor::has_entries() {
  const std::lock_guard lock(queue_mutex_);
  return !queue_.empty();
}

std::shared_ptr<detail::WorkState> Executor::pop() {
  const std::lock_guard lock(queue_mutex_);
  if (queue_.empty() || (queue_.front()->needs_communication_thread() && !thread_is_communication))
    return nullptr;
  std::shared_ptr<detail::WorkState> work = std::move(queue_.front());
  queue_.pop_front();
  return work;
}

// The caller holds run_mutex_, or is inside an entry of its own.
void Executor::execute(std::shared_ptr<detail::WorkState> work) noexcept {
  std::exception_ptr error;
  ++thread_entry_depth;
  try {
    if (work->as_point_to_point() != nullptr) {
      point_to_point_.push_back(std::move(work));
      point_to_point_count_.store(point_to_point_.size(), std::memory_order_seq_cst);
    } else {
      work->run();
    }
  } catch (...) {
    error = std::current_exception();
  }
  --thread_entry_depth;
  if (work == nullptr) return;
  work->release();
  work->finish(std::move(error));
}

void Executor::run_entries(const detail::WorkState* until) noexcept {
  while (until == nullptr || !until->is_done()) {
    std::shared_ptr<detail::WorkState> work = pop();
    if (work == nullptr) break;
    execute(std::move(work));
  }
  progress_point_to_point();
}

void Executor::progress_point_to_point() noexcept {
  if (point_to_point_.empty()) return;
  for (std::shared_ptr<detail::WorkState>& work : point_to_point_) {
    std::exception_ptr error;
    bool done = true;
    try {
      done = work->as_point_to_point()->progress();
    } catch (...) {
      error = std::current_exception();
    }
    if (!done) continue;
    if (error != nullptr && stopping_.load(std::memory_order_relaxed)) warn_of_lost(error);
    work->release();
    work->finish(std::move(error));
    work.reset();
  }
  std::erase(point_to_point_, nullptr);
  point_to_point_count_.store(point_to_point_.size(), std::memory_order_seq_cst);
}

void Executor::give_up_point_to_point() noexcept {
  for (const std::shared_ptr<detail::WorkState>& work : point_to_point_) {
    std::exception_ptr error;
    try {
      tutti::detail::fail<CommError>(work->as_point_to_point()->text(),
                                     " has found no counterpart before the Environment has ended");
    } catch (...) {
      error = std::current_exception();
    }
    warn_of_lost(error);
    work->release();
    work->finish(error);
  }
  point_to_point_.clear();
  point_to_point_count_.store(0, std::memory_order_seq_cst);
}

std::chrono::nanoseconds Executor::longest_sleep() const noexcept {
  std::chrono::nanoseconds longest = kLongestSleep;
  for (const auto& work : point_to_point_)
    longest = std::min(longest, work->as_point_to_point()->poll_interval());
  return longest;
}

void Executor::thread_main() noexcept {
  thread_is_communication = true;
  mark_thread_serial();
  trace::set_thread_name("communication");
  pthread_setname_np(pthread_self(), "tutti-comm");
  std::uint32_t seen = 0;
  for (int naps = 0;;) {
    const std::uint32_t before = std::exchange(seen, wakes_.load(std::memory_order_seq_cst));
    naps = seen == before ? naps + 1 : 0;
    {
      const std::lock_guard lock(run_mutex_);
      run_entries(nullptr);
    }
    if (point_to_point_count_.load(std::memory_order_seq_cst) != 0) {
      move_messages();
      continue;
    }
    if (stopping_.load(std::memory_order_acquire) && !has_entries()) return;
    const bool nap = !thread_has_own_core_ && naps < kLongestNaps;
    thread_rests_.store(nap ? Rest::kNap : Rest::kSleep, std::memory_order_seq_cst);
    futex_wait(wakes_, seen, nap ? std::chrono::nanoseconds(kNap) : kLongestIdle);
    thread_rests_.store(Rest::kNone, std::memory_order_relaxed);
  }
}

// While sends and receives are under way the thread sleeps at the doorbell, which peers and wake_thread() ring.
void Executor::move_messages() noexcept {
  Doorbell::Listener listener(doorbell_);
  auto give_up_at = Clock::time_point::max();
  while (point_to_point_count_.load(std::memory_order_seq_cst) != 0) {
    listener.arm();
    std::chrono::nanoseconds sleep{};
    {
      const std::lock_guard lock(run_mutex_);
      run_entries(nullptr);
      if (stopping_.load(std::memory_order_acquire) && !has_entries()) {
        give_up_at = std::min(give_up_at, Clock::now() + kLastTransfers);
        if (Clock::now() >= give_up_at) give_up_point_to_point();
      }
      sleep = longest_sleep();
    }
    if (point_to_point_count_.load(std::memory_order_seq_cst) != 0) listener.sleep(sleep);
  }
}

void Executor::wait(detail::WorkState& work) {
  if (work.is_done()) return;
  if (thread_entry_depth > 0) {
    wait_inside(work);
    return;
  }
  const phase::Scope exposed(phase::Kind::kExposedCommunication);
  waiting_.fetch_add(1, std::memory_order_relaxed);
  while (!work.is_done()) {
    if (run_mutex_.try_lock()) {
      run_entries(&work);
      run_mutex_.unlock();
      // What is left over is the thread's.
      if (point_to_point_count_.load(std::memory_order_seq_cst) != 0 || has_entries()) wake_thread();
    }
    if (thread_has_own_core_) {
      const auto until = Clock::now() + kWaiterSpins;
      while (!work.is_done() && Clock::now() < until) spin_pause();
    }
    work.sleep_until_done(kLongestSleep);
  }
  waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void Executor::wait_inside(detail::WorkState& work) {
  const bool moving = std::any_of(point_to_point_.begin(), point_to_point_.end(),
                                  [&work](const auto& started) { return started.get() == &work; });
  TUTTI_CHECK(moving, CommError,
              "a function given to Work::then waits for an operation that stands behind it in the queue");
  Doorbell::Listener listener(doorbell_);
  while (!work.is_done()) {
    listener.arm();
    progress_point_to_point();
    if (!work.is_done()) listener.sleep(longest_sleep());
  }
}

}  // namespace tutti::comm
