// SPDX-License-Identifier: Apache-2.0
// A plugin for tests: two devices whose memory is the host's, of which the second has 1 MiB. It can copy contiguous
// views of one dtype and fill with bytes; everything else is unsupported. FAULT spoils what the loader checks. It links
// nothing of the library, as a real plugin.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backend/backend.h"

#define FAULT_none 0
#define FAULT_version 1
#define FAULT_struct_size 2
#define FAULT_build_id 3
#define FAULT_pointwise_count 4
#define FAULT_no_table 5
#define FAULT_no_entry 6
#define FAULT_JOIN(name) FAULT_##name
#define FAULT_VALUE(name) FAULT_JOIN(name)
#define IS_FAULT(name) (FAULT_VALUE(FAULT) == FAULT_##name)

struct tutti_stream_handle {
  int32_t device;
};
struct tutti_event_handle {};

namespace {

thread_local char text[256];

tutti_status fail(tutti_status status, const char* message) {
  std::snprintf(text, sizeof text, "%s", message);
  return status;
}

void error_text(char* buffer, std::size_t size) { std::snprintf(buffer, size, "%s", text); }

constexpr std::size_t kSecondDeviceBytes = std::size_t{1} << 20U;
std::atomic<std::size_t> second_device_used{0};

tutti_status allocate(int32_t device, std::size_t bytes, void** out) {
  if (device == 1 && second_device_used + bytes > kSecondDeviceBytes)
    return fail(TUTTI_OUT_OF_MEMORY, "full");
  *out = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (*out == nullptr) return fail(TUTTI_OUT_OF_MEMORY, "the host is full");
  if (device == 1) second_device_used += bytes;
  return TUTTI_OK;
}
tutti_status release(int32_t device, void* data, std::size_t bytes) {
  std::free(data);
  if (device == 1) second_device_used -= bytes;
  return TUTTI_OK;
}
tutti_status allocate_pinned(std::size_t bytes, void** out) { return allocate(0, bytes, out); }
tutti_status release_pinned(void* data, std::size_t bytes) { return release(0, data, bytes); }
tutti_status copy_bytes(tutti_stream, void* out, int32_t, const void* in, int32_t, std::size_t bytes) {
  std::memcpy(out, in, bytes);
  return TUTTI_OK;
}
tutti_status info(int32_t, std::size_t* free_bytes, std::size_t* total_bytes) {
  *total_bytes = kSecondDeviceBytes;
  *free_bytes = kSecondDeviceBytes - second_device_used;
  return TUTTI_OK;
}

tutti_status stream_create(int32_t device, int32_t, tutti_stream* out) {
  *out = new tutti_stream_handle{device};
  return TUTTI_OK;
}
tutti_status stream_destroy(tutti_stream stream) {
  delete stream;
  return TUTTI_OK;
}
tutti_status stream_synchronize(tutti_stream) { return TUTTI_OK; }
tutti_status stream_query(tutti_stream, int32_t* done) {
  *done = 1;
  return TUTTI_OK;
}
tutti_status wait_event(tutti_stream, tutti_event) { return TUTTI_OK; }
tutti_status event_create(int32_t, int32_t, tutti_event* out) {
  *out = new tutti_event_handle;
  return TUTTI_OK;
}
tutti_status event_destroy(tutti_event event) {
  delete event;
  return TUTTI_OK;
}
tutti_status event_record(tutti_event, tutti_stream) { return TUTTI_OK; }
tutti_status event_query(tutti_event, int32_t* done) {
  *done = 1;
  return TUTTI_OK;
}
tutti_status event_synchronize(tutti_event) { return TUTTI_OK; }
tutti_status event_elapsed(tutti_event, tutti_event, float* milliseconds) {
  *milliseconds = 0;
  return TUTTI_OK;
}
tutti_status device_count(int32_t* count) {
  *count = 2;
  return TUTTI_OK;
}
tutti_status device_name(int32_t, char* buffer, std::size_t size) {
  std::snprintf(buffer, size, "test device");
  return TUTTI_OK;
}
tutti_status device_synchronize(int32_t) { return TUTTI_OK; }

constexpr std::size_t kSizes[] = {8, 4, 2, 2, 8, 4, 2, 1, 1, 1};

// Elements, or -1 if the view is not row-major.
int64_t row_major_numel(const tutti_view& view) {
  int64_t numel = 1;
  for (int d = view.ndim - 1; d >= 0; --d) {
    if (view.sizes[d] != 1 && view.strides[d] != numel) return -1;
    numel *= view.sizes[d];
  }
  return numel;
}

tutti_status copy(const tutti_copy* call) {
  const int64_t numel = row_major_numel(call->out);
  if (call->out.dtype != call->in.dtype || numel < 0 || numel != row_major_numel(call->in)) {
    return fail(TUTTI_UNSUPPORTED, "copy: the test device copies row-major views of one dtype");
  }
  std::memcpy(call->out.data, call->in.data, static_cast<std::size_t>(numel) * kSizes[call->out.dtype]);
  return TUTTI_OK;
}

template <class Call>
tutti_status unsupported(const Call*) {
  return fail(TUTTI_UNSUPPORTED, "the test device has no such kernel");
}

[[maybe_unused]] tutti_backend make_table() {
  const char* count = std::getenv("TUTTI_TEST_POINTWISE_COUNT");
  const char* build = std::getenv("TUTTI_TEST_BUILD_ID");
  static const tutti_pointwise_function kNone = unsupported;
  tutti_backend table{};
  table.version = TUTTI_BACKEND_VERSION + (IS_FAULT(version) ? 1 : 0);
  table.struct_size = static_cast<int32_t>(sizeof table) - (IS_FAULT(struct_size) ? 8 : 0);
  table.build_id = IS_FAULT(build_id) ? "another build" : build;
  table.name = "test plugin";
  table.error_text = error_text;
  table.memory = {allocate, release, allocate_pinned, release_pinned, copy_bytes, info};
  table.streams = {stream_create, stream_destroy, stream_synchronize, stream_query,      wait_event,
                   event_create,  event_destroy,  event_record,       event_query,       event_synchronize,
                   event_elapsed, device_count,   device_name,        device_synchronize};
  tutti_kernel_functions& kernels = table.kernels;
  kernels.pointwise = &kNone;
  kernels.pointwise_count = (count != nullptr ? std::atoi(count) : 0) - (IS_FAULT(pointwise_count) ? 1 : 0);
  kernels.reduce = unsupported;
  kernels.copy = copy;
  kernels.fill = unsupported;
  kernels.arange = unsupported;
  kernels.random = unsupported;
  return table;
}

}  // namespace

#if !IS_FAULT(no_entry)
extern "C" __attribute__((visibility("default"))) const tutti_backend* tutti_backend_v1(
    const tutti_host_services* host) {
  static const tutti_backend kTable = make_table();
  if (IS_FAULT(no_table) || host->version != TUTTI_BACKEND_VERSION) return nullptr;
  return &kTable;
}
#endif
