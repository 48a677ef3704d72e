// SPDX-License-Identifier: Apache-2.0
#include "backend/registry.hpp"

#include <mutex>
#include <new>
#include <string_view>

#include "backend/plugin.hpp"

namespace tutti::backend {

namespace detail {
constinit std::atomic<const tutti_backend*> tables[kTypes] = {};
}  // namespace detail

namespace {

constexpr int kCpu = 0;
constexpr int kCuda = 1;

// A plugin is looked for once: a process whose GPU library is missing must not search the disk at every
// question.
struct CudaSearch {
  std::mutex mutex;
  bool done = false;
  std::string reason;
};
CudaSearch& cuda_search() {
  static auto* const search = new CudaSearch;  // never destroyed: static destructors may ask
  return *search;
}

const tutti_backend* find_cuda(std::string* reason) {
  CudaSearch& search = cuda_search();
  const std::scoped_lock lock(search.mutex);
  if (!search.done) {
    const tutti_backend* table = open_first_plugin(cuda_plugin_candidates(), search.reason);
    detail::tables[kCuda].store(table, std::memory_order_release);
    search.done = true;
  }
  const tutti_backend* table = detail::tables[kCuda].load(std::memory_order_relaxed);
  if (table == nullptr && reason != nullptr) *reason = search.reason;
  return table;
}

std::string error_text(const tutti_backend& backend) {
  char buffer[1024] = "";
  backend.error_text(buffer, sizeof buffer);
  buffer[sizeof buffer - 1] = '\0';
  return buffer[0] != '\0' ? buffer : "no further text";
}

// Backends begin their texts with a kernel's name, which often is `where`, or their own: these are not said twice.
std::string_view without_name(std::string_view text, std::string_view where) {
  if (!text.starts_with(where)) return text;
  const std::string_view rest = text.substr(where.size());
  if (rest.starts_with(": ")) return rest.substr(2);
  return rest.starts_with(" backward: ") ? rest.substr(1) : text;
}

}  // namespace

const tutti_backend& detail::load(int type) {
  std::string reason;
  if (const tutti_backend* table = try_get(type, &reason)) return *table;
  throw DeviceError(reason);
}

const tutti_backend* try_get(int type, std::string* reason) noexcept {
  try {
    if (type == kCpu) {
      const tutti_backend* table = tutti_cpu_backend();
      detail::tables[kCpu].store(table, std::memory_order_release);
      return table;
    }
    if (type == kCuda) return find_cuda(reason);
    if (reason != nullptr) *reason = concat("there is no device type ", type);
  } catch (const std::exception& failure) {
    if (reason != nullptr) reason->assign(failure.what());
  }
  return nullptr;
}

void throw_status(const tutti_backend& backend, tutti_status status, const char* where) {
  const std::string text = concat(where, " on ", backend.name, ": ",
                                  without_name(without_name(error_text(backend), backend.name), where));
  switch (status) {
    case TUTTI_UNSUPPORTED:
      // The CPU has every kernel, so what it lacks is a dtype; a plugin may lack the kernel itself.
      if (&backend == tutti_cpu_backend()) throw DTypeError(text);
      throw DeviceError(text);
    case TUTTI_INVALID: throw IndexError(text);
    case TUTTI_OUT_OF_MEMORY: throw MemoryError(text);
    case TUTTI_OK:
    case TUTTI_DEVICE_FAILED: break;
  }
  throw DeviceError(text);
}

}  // namespace tutti::backend
