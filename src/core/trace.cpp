// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/trace.hpp"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <new>

#include "core/trace_ring.hpp"

namespace tutti::trace {

namespace detail {
std::atomic<bool> enabled_flag{false};
}

namespace {

using Ring = BasicRing<65536>;  // 2 MiB a thread, touched as they fill

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<Ring>> rings;
  std::uint64_t next_thread_index = 0;
};

// Never destroyed: threads and static destructors may record until the process is gone.
Registry& registry() {
  static Registry* const kRegistry = new Registry;
  return *kRegistry;
}

enum class ThreadState : std::uint8_t { kNew, kRecording, kEnded };
constinit thread_local Ring* thread_ring = nullptr;
constinit thread_local const char* thread_name = nullptr;  // not set
constinit thread_local ThreadState thread_state = ThreadState::kNew;

// The name of a thread that has set none. Linux numbers a process's first thread as the process.
const char* default_thread_name() noexcept { return gettid() == getpid() ? "main" : "thread"; }

// Its destructor hands the ring to the registry, which drops it after the next take.
struct RingOwner {
  ~RingOwner() {
    thread_state = ThreadState::kEnded;
    if (thread_ring != nullptr) thread_ring->finish();
    thread_ring = nullptr;
  }
  void touch() const noexcept {}
};

[[gnu::noinline]] Ring* start_ring() noexcept {
  if (thread_state == ThreadState::kEnded) return nullptr;  // a Range in a destructor that runs after ours
  try {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    all.rings.push_back(std::make_unique<Ring>(all.next_thread_index,
                                               thread_name != nullptr ? thread_name : default_thread_name()));
    ++all.next_thread_index;
    thread_ring = all.rings.back().get();
  } catch (const std::bad_alloc&) {
    return nullptr;  // tracing must not end a run
  }
  thread_local const RingOwner owner;
  owner.touch();
  thread_state = ThreadState::kRecording;
  return thread_ring;
}

}  // namespace

std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void detail::record(const char* name, std::int64_t begin_ns, std::int64_t argument) noexcept {
  const std::int64_t end_ns = now_ns();
  Ring* ring = thread_ring;
  if (ring == nullptr) [[unlikely]]
    ring = start_ring();
  if (ring != nullptr) ring->push({name, begin_ns, end_ns, argument});
}

void enable(bool on) noexcept { detail::enabled_flag.store(on, std::memory_order_relaxed); }

std::vector<ThreadRecords> take() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<ThreadRecords> taken;
  taken.reserve(all.rings.size());
  std::erase_if(all.rings, [&taken](const std::unique_ptr<Ring>& ring) {
    const bool finished = ring->finished();  // read first: nothing comes after it
    ThreadRecords records = ring->take();
    if (!records.records.empty() || records.dropped > 0) taken.push_back(std::move(records));
    return finished;
  });
  return taken;
}

void set_thread_name(const char* name) noexcept {
  thread_name = name;
  if (thread_ring != nullptr) thread_ring->rename(name);
}

}  // namespace tutti::trace
