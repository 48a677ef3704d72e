// SPDX-License-Identifier: Apache-2.0
/// \file
/// Trace points: named ranges of time on a thread. Off they cost one relaxed load; on, one fixed-size record
/// in the thread's own ring. The profiler reads the rings; nothing here locks, allocates (after the first
/// record of a thread) or copies text.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "tutti/core/export.hpp"

namespace tutti::trace {

/// One finished range. `name` is a string literal. Times are nanoseconds of the steady clock.
struct Record {
  const char* name;
  std::int64_t begin_ns;
  std::int64_t end_ns;
  std::int64_t argument;  ///< Free for the trace point: a bucket's index, a number of bytes.
};

/// The records of one thread, oldest first.
struct ThreadRecords {
  std::uint64_t thread_index;  ///< 0, 1, 2 ... in the order in which threads recorded first.
  const char* thread_name;     ///< As set by set_thread_name; else "main" or "thread".
  std::uint64_t dropped;       ///< Records that were overwritten because the ring was full.
  std::vector<Record> records;
};

namespace detail {
TUTTI_API extern std::atomic<bool> enabled_flag;
TUTTI_API void record(const char* name, std::int64_t begin_ns, std::int64_t argument) noexcept;
}  // namespace detail

/// Nanoseconds of the steady clock.
TUTTI_API std::int64_t now_ns() noexcept;
inline bool enabled() noexcept { return detail::enabled_flag.load(std::memory_order_relaxed); }
/// Starts or stops recording in all threads.
TUTTI_API void enable(bool on) noexcept;
/// Copies out all threads' records and forgets them. Ranges still open are not included.
TUTTI_API std::vector<ThreadRecords> take();
/// Names the calling thread's lane. `name` is a string literal.
TUTTI_API void set_thread_name(const char* name) noexcept;

/// Records the time between construction and destruction: `trace::Range range{"backward"};`
class Range {
 public:
  explicit Range(const char* name, std::int64_t argument = 0) noexcept
      : name_(enabled() ? name : nullptr), begin_ns_(name_ != nullptr ? now_ns() : 0), argument_(argument) {}
  ~Range() {
    if (name_ != nullptr) [[unlikely]]
      detail::record(name_, begin_ns_, argument_);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  const char* name_;
  std::int64_t begin_ns_;
  std::int64_t argument_;
};

}  // namespace tutti::trace
