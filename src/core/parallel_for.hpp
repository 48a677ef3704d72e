// SPDX-License-Identifier: Apache-2.0
// parallel_for: one OpenMP team shared with oneDNN, entered only by the compute thread.
//
// The range is cut into chunks whose borders depend on begin, end and grain alone, never on the number of
// threads, so a body that writes only its own elements gives the same bits for any team. A body called from a
// thread that is already inside a parallel region, or marked serial (loader and communication threads), runs
// in place.
#pragma once

#include <cstdint>
#include <type_traits>

#include "tutti/core/export.hpp"
#include "tutti/core/threads.hpp"

namespace tutti {

// Marks the calling thread as one that must not start a team (loader, communication).
void mark_thread_serial() noexcept;

namespace detail {
using RangeBody = void (*)(void* context, std::int64_t begin, std::int64_t end);
// Runs body over chunks of `grain` on the team; rethrows the first exception of a chunk.
void run_parallel(std::int64_t begin, std::int64_t end, std::int64_t grain, RangeBody body, void* context);
}  // namespace detail

// Calls body(chunk_begin, chunk_end) over [begin, end) in chunks of at most `grain` elements. With at most
// one chunk the call is made in place, without any thread machinery.
template <class Body>
void parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain, const Body& body) {
  if (end <= begin) return;
  if (end - begin <= grain) {
    body(begin, end);
    return;
  }
  detail::run_parallel(
      begin, end, grain,
      [](void* context, std::int64_t b, std::int64_t e) { (*static_cast<const Body*>(context))(b, e); },
      const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace tutti
