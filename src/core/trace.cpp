// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/trace.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

namespace tutti::trace {

namespace detail {
std::atomic<bool> enabled_flag{false};
}

namespace {

constexpr std::uint64_t kRingRecords = 65536;  // 2 MiB a thread, touched as they fill

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

// One writer (the thread), readers one at a time (under the registry's lock). Record i lies in slot i %
// kRingRecords.
//
// The writer stores the fields of record i, then written = i + 1. A reader copies the records below `written`
// and reads `written` once more: record i may have been overwritten meanwhile if the writer has reached or
// begun record i + kRingRecords, that is if written >= i + kRingRecords. Each field is stored with release
// and loaded with acquire, so a reader that saw a field of a newer record also sees the `written` that came
// before it. No record is torn.
class Ring {
 public:
  Ring(std::uint64_t thread_index, const char* thread_name)
      : slots_(static_cast<Record*>(std::calloc(kRingRecords, sizeof(Record)))),
        thread_index_(thread_index),
        thread_name_(thread_name) {
    if (slots_ == nullptr) throw std::bad_alloc();
  }

  void push(const Record& record) noexcept {
    const std::uint64_t index = written_.load(std::memory_order_relaxed);
    Record& slot = slots_.get()[index % kRingRecords];
    store(slot.name, record.name);
    store(slot.begin_ns, record.begin_ns);
    store(slot.end_ns, record.end_ns);
    store(slot.argument, record.argument);
    written_.store(index + 1, std::memory_order_release);
  }

  ThreadRecords take() {
    ThreadRecords out{thread_index_, thread_name_.load(std::memory_order_relaxed), 0, {}};
    const std::uint64_t end = written_.load(std::memory_order_acquire);
    std::uint64_t begin = std::max(taken_, end > kRingRecords ? end - kRingRecords : 0);
    out.records.reserve(end - begin);
    for (std::uint64_t index = begin; index < end; ++index) {
      Record& slot = slots_.get()[index % kRingRecords];
      out.records.push_back({load(slot.name), load(slot.begin_ns), load(slot.end_ns), load(slot.argument)});
    }
    const std::uint64_t now_written = written_.load(std::memory_order_acquire);
    if (now_written >= kRingRecords) {
      const std::uint64_t intact = std::clamp(now_written - kRingRecords + 1, begin, end);
      out.records.erase(out.records.begin(),
                        out.records.begin() + static_cast<std::ptrdiff_t>(intact - begin));
      begin = intact;
    }
    out.dropped = begin - taken_;
    taken_ = end;
    return out;
  }

  void rename(const char* name) noexcept { thread_name_.store(name, std::memory_order_relaxed); }
  void finish() noexcept { finished_.store(true, std::memory_order_release); }
  bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }

 private:
  template <class T>
  static void store(T& field, T value) noexcept {
    std::atomic_ref<T>(field).store(value, std::memory_order_release);
  }
  template <class T>
  static T load(T& field) noexcept {
    return std::atomic_ref<T>(field).load(std::memory_order_acquire);
  }

  std::unique_ptr<Record, Free> slots_;
  std::atomic<std::uint64_t> written_{0};
  std::uint64_t taken_ = 0;  // the reader's; guarded by the registry's lock
  std::uint64_t thread_index_;
  std::atomic<const char*> thread_name_;
  std::atomic<bool> finished_{false};
};

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
constinit thread_local const char* thread_name = "thread";
constinit thread_local ThreadState thread_state = ThreadState::kNew;

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
    all.rings.push_back(std::make_unique<Ring>(all.next_thread_index, thread_name));
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
