// SPDX-License-Identifier: Apache-2.0
#include "comm/ending.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <thread>

#include "comm/mpi/mpi_runtime.hpp"
#include "core/start_thread.hpp"
#include "tutti/core/error.hpp"

namespace tutti::comm {

namespace {

using namespace std::chrono_literals;

// What other ranks have printed passes through the launcher, which must have written it before our message.
constexpr auto kOutputDelay = 200ms;
// MPI_Abort takes about 0.3 s.
constexpr auto kAbortDeadline = 2s;
constexpr auto kExitDeadline = 1s;

enum class Phase { kIdle, kStarting, kRunning, kUnwound };

struct Ending {
  std::atomic<Phase> phase{Phase::kIdle};
  std::atomic<bool> begun{false};
  std::atomic<bool> is_forked_child{false};
  int rank = -1;
  bool under_mpi = false;
  std::shared_ptr<Host> host;
  std::thread watcher;  // sleeps until another rank of this host ends the job
  std::terminate_handler previous_handler = nullptr;
};

Ending& ending() {
  static Ending* const kEnding = new Ending;  // used while the process exits
  return *kEnding;
}

void write_whole(const std::string& text) noexcept {
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data() + written, text.size() - written);
    if (count <= 0) return;
    written += static_cast<std::size_t>(count);
  }
}

// Runs what might block on a lock that a stuck thread holds; waits for its end, but no longer than `longest`.
template <class Function>
void run_bounded(const Function& function, std::chrono::milliseconds longest) noexcept {
  try {
    const auto ended = std::make_shared<std::promise<void>>();
    const std::future<void> end = ended->get_future();
    std::thread([function, ended] {
      function();
      ended->set_value();
    }).detach();
    end.wait_for(longest);
  } catch (const std::exception&) {
    return;
  }
}

// What the program has printed and the C and C++ libraries still hold.
void flush_output() noexcept {
  run_bounded(
      [] {
        std::cout.flush();
        std::fflush(nullptr);
      },
      kOutputDelay);
}

// Another rank ends the job. Output leaves before that rank's message; a launcher of MPI then ends this process, whatever it computes,
// and without one it ends itself. One that fails as well ends by its own exit.
void watch() noexcept {
  Ending& state = ending();
  if (!state.host->wait_for_failure()) return;
  flush_output();
  if (!state.under_mpi && state.phase.load() == Phase::kRunning) ::_exit(EXIT_FAILURE);
}

[[noreturn]] void leave(const std::string& message) noexcept {
  Ending& state = ending();
  const bool first_here = !state.begun.exchange(true);
  const bool first = first_here && (state.host == nullptr || state.host->announce_failure());
  if (!first) {
    // Another rank, or another thread of this one, is about to end the job.
    flush_output();
    if (state.under_mpi || !first_here) std::this_thread::sleep_for(kLongestPark);
    ::_exit(EXIT_FAILURE);
  }
  flush_output();
  if (!message.empty()) {
    std::this_thread::sleep_for(kOutputDelay);
    write_whole(message);
  }
  if (state.under_mpi) run_bounded([] { abort_mpi_job(EXIT_FAILURE); }, kAbortDeadline);
  ::_exit(EXIT_FAILURE);
}

std::string text_of_current_exception() {
  try {
    if (std::current_exception() == nullptr) return "std::terminate was called";
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

[[noreturn]] void on_terminate() {
  if (ending().phase.load() == Phase::kIdle) {
    if (ending().previous_handler != nullptr) ending().previous_handler();
    std::abort();
  }
  end_job(text_of_current_exception());
}

void on_exit() {
  switch (ending().phase.load()) {
    case Phase::kIdle: return;
    case Phase::kStarting:  // refused, and the program has caught that
      if (ending().under_mpi && mpi_is_initialized()) leave({});
      return;
    case Phase::kRunning: end_job("the program has called exit() before its Environment ended");
    case Phase::kUnwound: leave({});  // its catch has had its say
  }
}

}  // namespace

void end_job(const std::string& message) noexcept {
  const int rank = ending().rank;
  leave(concat(rank < 0 ? "" : concat("rank ", rank, ": "), message, message.ends_with('\n') ? "" : "\n"));
}

void watch_start(int rank, bool under_mpi) {
  Ending& state = ending();
  state.rank = rank;
  state.under_mpi = under_mpi;
  static std::once_flag installed;
  std::call_once(installed, [&state] {
    state.previous_handler = std::set_terminate(on_terminate);
    std::atexit(on_exit);
    ::pthread_atfork(nullptr, nullptr, [] {
      if (ending().phase.exchange(Phase::kIdle) != Phase::kIdle) ending().is_forked_child.store(true);
    });
  });
  state.phase.store(Phase::kStarting);
}

bool is_forked_child() noexcept { return ending().is_forked_child.load(std::memory_order_relaxed); }

void watch_for_failure(std::shared_ptr<Host> host) {
  Ending& state = ending();
  state.host = std::move(host);
  state.phase.store(Phase::kRunning);
  if (state.host->shares_memory()) state.watcher = start_thread(watch);
}

void stop_watching() noexcept {
  Ending& state = ending();
  state.phase.store(Phase::kIdle);
  if (state.watcher.joinable()) {
    state.host->stop_watching();
    state.watcher.join();
  }
  state.host = nullptr;
}

void expect_exit() noexcept {
  Ending& state = ending();
  state.phase.store(Phase::kUnwound);
  if (state.host != nullptr) state.host->announce_failure();
  flush_output();
  std::this_thread::sleep_for(kOutputDelay);  // main's catch may print a message, which is to stand last
  try {
    std::thread([] {
      std::this_thread::sleep_for(kExitDeadline);
      end_job("an exception has ended its Environment, and the program did not exit");
    }).detach();
  } catch (const std::system_error&) {
    end_job("an exception has ended its Environment");
  }
}

}  // namespace tutti::comm
