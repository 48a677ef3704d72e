// SPDX-License-Identifier: Apache-2.0
// Streams and events of the CPU: work runs inline, so a stream is always done. Events keep the time of their
// record.
#include <atomic>
#include <chrono>
#include <cstdio>

#include "core/cpu_features.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"

struct tutti_stream_handle {
  std::int32_t priority;
};

struct tutti_event_handle {
  std::atomic<std::int64_t> recorded_ns{-1};
};

namespace tutti::cpu {
namespace {

std::int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

tutti_status stream_create(std::int32_t, std::int32_t priority, tutti_stream* out) {
  return guarded([&] { *out = new tutti_stream_handle{priority}; });
}
tutti_status stream_destroy(tutti_stream stream) {
  delete stream;
  return TUTTI_OK;
}
tutti_status stream_synchronize(tutti_stream) { return TUTTI_OK; }
tutti_status stream_query(tutti_stream, std::int32_t* done) {
  *done = 1;
  return TUTTI_OK;
}
tutti_status stream_wait_event(tutti_stream, tutti_event) { return TUTTI_OK; }

tutti_status event_create(std::int32_t, std::int32_t, tutti_event* out) {
  return guarded([&] { *out = new tutti_event_handle; });
}
tutti_status event_destroy(tutti_event event) {
  delete event;
  return TUTTI_OK;
}
tutti_status event_record(tutti_event event, tutti_stream) {
  event->recorded_ns.store(now_ns(), std::memory_order_relaxed);
  return TUTTI_OK;
}
tutti_status event_query(tutti_event, std::int32_t* done) {
  *done = 1;
  return TUTTI_OK;
}
tutti_status event_synchronize(tutti_event) { return TUTTI_OK; }
tutti_status event_elapsed(tutti_event begin, tutti_event end, float* milliseconds) {
  const std::int64_t first = begin->recorded_ns.load(std::memory_order_relaxed);
  const std::int64_t last = end->recorded_ns.load(std::memory_order_relaxed);
  if (first < 0 || last < 0) {
    return fail(TUTTI_DEVICE_FAILED,
                "event: wanted the time between two recorded events, given one that was never recorded");
  }
  *milliseconds = static_cast<float>(static_cast<double>(last - first) * 1e-6);
  return TUTTI_OK;
}

tutti_status device_count(std::int32_t* count) {
  *count = 1;
  return TUTTI_OK;
}
tutti_status device_name(std::int32_t, char* buffer, std::size_t size) {
  return guarded([&] {
    if (size > 0) std::snprintf(buffer, size, "%s", cpu_features().model_name.c_str());
  });
}
tutti_status device_synchronize(std::int32_t) { return TUTTI_OK; }

}  // namespace

const tutti_stream_functions& stream_functions() noexcept {
  static constexpr tutti_stream_functions kFunctions{
      &stream_create, &stream_destroy, &stream_synchronize, &stream_query,      &stream_wait_event,
      &event_create,  &event_destroy,  &event_record,       &event_query,       &event_synchronize,
      &event_elapsed, &device_count,   &device_name,        &device_synchronize};
  return kFunctions;
}

}  // namespace tutti::cpu
