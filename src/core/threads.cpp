// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/threads.hpp"

#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/environment_variables.hpp"
#include "core/parallel_for.hpp"
#include "core/start_thread.hpp"
#include "core/team.hpp"
#include "core/topology.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"

namespace tutti {

namespace {

constexpr std::int64_t kMaxThreads = 4096;

// What the threads of a region need to bind themselves. Published as a whole and never freed: a thread may
// still read an old one, and there is one for each call of set_num_threads only.
struct Binding {
  unsigned generation = 0;
  bool pinned = false;      // one core a thread; otherwise all of `cores`
  std::vector<Core> cores;  // the rank's
};

struct Team {
  std::mutex mutex;
  Placement placement;
  bool user_binds = false;  // OMP_PROC_BIND and its like leave the binding to the OpenMP library
  bool placed = false;
  bool spins_briefly = false;
  std::vector<std::unique_ptr<const Binding>> bindings;
};

Team& team() {
  static Team* const kTeam = new Team;  // threads may outlive static destruction
  return *kTeam;
}

std::atomic<int> team_size{0};  // 0: not decided yet
std::atomic<const Binding*> team_binding{nullptr};
std::atomic<bool> team_has_owner{false};

constinit thread_local bool thread_serial = false;
constinit thread_local bool thread_owns_team = false;
constinit thread_local int thread_openmp_threads = 0;  // the team size that this thread told OpenMP
constinit thread_local unsigned thread_binding_generation = 0;

bool openmp_binding_requested() {
  return environment_text("OMP_PROC_BIND") || environment_text("OMP_PLACES") ||
         environment_text("GOMP_CPU_AFFINITY");
}

[[maybe_unused]] int processors_in_mask() {
  std::size_t count = 0;
  for (const Core& core : topology().cores) count += core.processors.size();
  return static_cast<int>(count);
}

[[maybe_unused, noreturn]] void sleep_forever() noexcept {
  for (;;) pause();
}

// Idle libgomp threads spin about 10 ms before they sleep, which starves the other ranks when threads are
// more than cores. The spin count is read from the environment when libgomp loads, before any code of ours,
// and has no setter; but libgomp itself spins 300 times less once it manages more threads than the process
// has processors. So when all ranks' threads exceed the cores, threads that sleep for ever bring it over that
// mark. Measured, two ranks of two threads on two cores: 21,000 regions a second in place of 10,800, the same
// as with OMP_WAIT_POLICY=passive; with cores enough it would cost two thirds of the speed, so it is not done
// then.
void make_openmp_spin_briefly(int threads) {
#if defined(_OPENMP) && !defined(TUTTI_PARALLEL_STD_THREAD)
  if (environment_text("OMP_WAIT_POLICY") || environment_text("GOMP_SPINCOUNT")) return;
  const int sleepers = processors_in_mask() - threads + 2;  // the first is not counted by libgomp
  if (sleepers < 2) return;
  try {
    start_thread([sleepers] {
#pragma omp parallel num_threads(sleepers)
      {
        pthread_setname_np(pthread_self(), "tutti-sleeper");
        sleep_forever();
      }
    }).detach();
  } catch (const std::system_error&) {
    logging::warning("no thread can be started to shorten the OpenMP threads' spinning");
  }
#else
  static_cast<void>(threads);
#endif
}

// Publishes size and binding. The caller holds the team's lock.
void publish(Team& all, int threads) {
  const bool fits = threads <= static_cast<int>(all.placement.cores.size());
  const bool oversubscribed =
      threads * all.placement.ranks_on_mask > static_cast<int>(topology().cores.size());
  auto binding = std::make_unique<Binding>();
  binding->generation = static_cast<unsigned>(all.bindings.size()) + 1;
  binding->cores = all.placement.cores;
  // A lone process that leaves cores free is not pinned: another one that does the same would sit on the same
  // cores.
  const bool alone = all.placement.ranks_on_mask == 1 && read_launch().local_size == 1;
  const bool all_cores = threads == static_cast<int>(all.placement.cores.size());
  binding->pinned = all.placement.owns_cores && fits && threads > 1 && (!alone || all_cores);
  if (!fits) binding->cores = topology().cores;
  if (oversubscribed && threads > 1 && !all.spins_briefly) {
    all.spins_briefly = true;
    make_openmp_spin_briefly(threads);
  }
  all.bindings.push_back(std::move(binding));
  team_binding.store(all.user_binds ? nullptr : all.bindings.back().get(), std::memory_order_release);
  team_size.store(threads, std::memory_order_release);
}

void place_team(Team& all) {
  if (all.placed) return;
  // The OpenMP team does not outlive a fork, and libgomp would wait for it: the child computes on its one thread.
  ::pthread_atfork(nullptr, nullptr, mark_thread_serial);
  all.user_binds = openmp_binding_requested() || !environment_flag("TUTTI_BIND_THREADS").value_or(true);
  all.placement = place(topology(), read_launch());
  if (openmp_binding_requested()) {  // the calling thread's mask may be one place of many
    all.placement.default_threads = std::max(omp_get_num_procs() / all.placement.ranks_on_mask, 1);
  }
  all.placed = true;
}

[[gnu::noinline]] int decide_team_size() {
  Team& all = team();
  const std::lock_guard lock(all.mutex);
  if (const int decided = team_size.load(std::memory_order_relaxed); decided != 0) return decided;
  const auto wanted = environment_integer("TUTTI_NUM_THREADS", 1, kMaxThreads);
  place_team(all);
  publish(all, wanted ? static_cast<int>(*wanted) : all.placement.default_threads);
  return team_size.load(std::memory_order_relaxed);
}

// OpenMP keeps the number of threads of a region for each calling thread: this is how oneDNN's regions get
// our team.
[[gnu::noinline]] void prepare_thread(int threads) noexcept {
#if defined(TUTTI_PARALLEL_STD_THREAD)
  omp_set_num_threads(1);
#else
  omp_set_num_threads(thread_serial ? 1 : threads);
#endif
  thread_openmp_threads = threads;
  if (!thread_serial && !team_has_owner.exchange(true)) thread_owns_team = true;
  TeamBinding::of_calling_thread().enter(0);
}

}  // namespace

int get_num_threads() {
  int threads = team_size.load(std::memory_order_acquire);
  if (threads == 0) [[unlikely]]
    threads = decide_team_size();
  if (thread_openmp_threads != threads) [[unlikely]]
    prepare_thread(threads);
  return threads;
}

void set_num_threads(int count) {
  TUTTI_CHECK(count >= 1 && count <= kMaxThreads, ValueError, "set_num_threads wants 1 to ", kMaxThreads,
              " threads, given ", count);
  Team& all = team();
  {
    const std::lock_guard lock(all.mutex);
    place_team(all);
    if (team_size.load(std::memory_order_relaxed) != count) publish(all, count);
  }
  get_num_threads();
}

void mark_thread_serial() noexcept {
  thread_serial = true;
  omp_set_num_threads(1);
}

void bind_team() { get_num_threads(); }

bool thread_is_serial() noexcept { return thread_serial; }

TeamBinding TeamBinding::of_calling_thread() noexcept {
  TeamBinding binding;
  if (!thread_owns_team) return binding;
  const Binding* current = team_binding.load(std::memory_order_acquire);
  if (current != nullptr) binding.generation_ = current->generation;
  return binding;
}

void TeamBinding::enter(int slot) const noexcept {
  if (generation_ == thread_binding_generation || generation_ == 0) [[likely]]
    return;
  thread_binding_generation = generation_;
  const Binding* current = team_binding.load(std::memory_order_acquire);
  if (current == nullptr) return;
  const auto core = static_cast<std::size_t>(slot);
  const bool pinned = current->pinned && core < current->cores.size();
  bool done = true;
  if (pinned) done = bind_calling_thread(&current->cores[core], 1);
  // The first thread moves to its core but may use all of the rank's: what it starts later (loader and
  // communication threads, OpenMP threads of a region that is larger than the last) inherits its mask.
  if (!pinned || slot == 0) done = bind_calling_thread(current->cores.data(), current->cores.size()) && done;
  if (!done) logging::info("the system refuses to bind compute thread ", slot);
}

std::string team_text() {
  const int threads = get_num_threads();
  Team& all = team();
  const std::lock_guard lock(all.mutex);
  const Binding* binding = team_binding.load(std::memory_order_acquire);
  std::string text = concat(threads, threads == 1 ? " thread, " : " threads, ");
  if (binding == nullptr) {
    text += "binding left to OpenMP and the system";
  } else if (binding->pinned) {
    text += concat("bound one a core to processors ", processor_list(binding->cores));
  } else {
    text += concat("free on processors ", processor_list(binding->cores));
  }
  return concat(text, " (", all.placement.reason, ")");
}

}  // namespace tutti
