// SPDX-License-Identifier: Apache-2.0
// One call of parallel_for: its chunks, dealt round robin, and the first exception.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "core/parallel_for.hpp"

namespace tutti::detail {

class ChunkJob {
 public:
  ChunkJob(std::int64_t begin, std::int64_t end, std::int64_t grain, RangeBody body, void* context) noexcept
      : begin_(begin),
        end_(end),
        grain_(std::max<std::int64_t>(grain, 1)),
        body_(body),
        context_(context),
        chunks_((end - begin + grain_ - 1) / grain_),
        failed_chunk_(chunks_) {}

  // Chunks slot, slot + count, ... A chunk above one that has failed is skipped, one below never is: so the
  // exception that is rethrown is that of the lowest failing chunk, whatever the number of threads.
  void run(int slot, int count) noexcept {
    for (std::int64_t chunk = slot; chunk < chunks_; chunk += count) {
      if (chunk > failed_chunk_.load(std::memory_order_relaxed)) return;
      try {
        run_chunk(chunk);
      } catch (...) {
        note_failure(chunk);
        return;
      }
    }
  }

  // All chunks in order on the calling thread, with the same borders.
  void run_in_place() {
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) run_chunk(chunk);
  }

  void rethrow() {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  void run_chunk(std::int64_t chunk) {
    const std::int64_t first = begin_ + chunk * grain_;
    body_(context_, first, std::min(end_ - first, grain_) + first);
  }

  void note_failure(std::int64_t chunk) noexcept {
    const std::lock_guard lock(mutex_);
    if (chunk >= failed_chunk_.load(std::memory_order_relaxed)) return;
    failed_chunk_.store(chunk, std::memory_order_relaxed);
    exception_ = std::current_exception();
  }

  std::int64_t begin_;
  std::int64_t end_;
  std::int64_t grain_;
  RangeBody body_;
  void* context_;
  std::int64_t chunks_;
  std::atomic<std::int64_t> failed_chunk_;
  std::mutex mutex_;
  std::exception_ptr exception_;
};

}  // namespace tutti::detail
