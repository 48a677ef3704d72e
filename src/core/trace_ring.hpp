// SPDX-License-Identifier: Apache-2.0
// The ring of trace records of one thread: written without locks, read by any thread at any time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "tutti/core/trace.hpp"

namespace tutti::trace {

// One writer (the thread), readers one at a time (under the registry's lock). Record i lies in slot i %
// kRingRecords.
//
// The writer stores the fields of record i, then written = i + 1. A reader copies the records below `written`
// and reads `written` once more: record i may have been overwritten meanwhile if the writer has reached or
// begun record i + kRingRecords, that is if written >= i + kRingRecords. Each field is stored with release
// and loaded with acquire, so a reader that saw a field of a newer record also sees the `written` that came
// before it. No record is torn.
template <std::uint64_t kRingRecords>
class BasicRing {
 public:
  BasicRing(std::uint64_t thread_index, const char* thread_name)
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
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
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

}  // namespace tutti::trace
