// SPDX-License-Identifier: Apache-2.0
// The CPU's memory: from the system, aligned to cache lines; large pieces to huge pages, which saves most
// misses of the address translation.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/status.hpp"

namespace tutti::cpu {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;

tutti_status allocate_bytes(std::size_t bytes, void** out) {
  // A last piece of at least half a huge page becomes a whole one, a smaller one is left on small pages.
  const std::size_t huge_bytes = (bytes + kHugePage / 2) / kHugePage * kHugePage;
  const bool large = bytes >= kHugePage;
  const std::size_t wanted = large ? std::max(bytes, huge_bytes) : std::max(bytes, kAlignment);
  void* data = nullptr;
  if (posix_memalign(&data, large ? kHugePage : kAlignment, wanted) != 0) {
    *out = nullptr;
    return fail(TUTTI_OUT_OF_MEMORY, "cpu: wanted ", bytes, " bytes of memory, which the system refused");
  }
#if defined(MADV_HUGEPAGE)
  // A refusal changes nothing but speed.
  if (large) madvise(data, huge_bytes, MADV_HUGEPAGE);
#endif
  *out = data;
  return TUTTI_OK;
}

tutti_status allocate(std::int32_t, std::size_t bytes, void** out) { return allocate_bytes(bytes, out); }

tutti_status release(std::int32_t, void* data, std::size_t) {
  std::free(data);
  return TUTTI_OK;
}

tutti_status allocate_pinned(std::size_t bytes, void** out) { return allocate_bytes(bytes, out); }

tutti_status release_pinned(void* data, std::size_t) {
  std::free(data);
  return TUTTI_OK;
}

tutti_status copy_bytes(tutti_stream, void* out, std::int32_t, const void* in, std::int32_t,
                        std::size_t bytes) {
  if (bytes > 0) std::memcpy(out, in, bytes);
  return TUTTI_OK;
}

// What programs could still get: free memory and the page cache that the system would give up. 0: not told.
long available_bytes() {
  std::FILE* file = std::fopen("/proc/meminfo", "r");
  if (file == nullptr) return 0;
  char line[128];
  long kibibytes = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "MemAvailable: %ld kB", &kibibytes) == 1) break;
  }
  std::fclose(file);
  return kibibytes * 1024;
}

tutti_status info(std::int32_t, std::size_t* free_bytes, std::size_t* total_bytes) {
  const long page = sysconf(_SC_PAGESIZE);
  const long total = sysconf(_SC_PHYS_PAGES);
  const long available = available_bytes() / std::max(page, 1L);
  if (page <= 0 || available <= 0 || total <= 0) {
    return fail(TUTTI_DEVICE_FAILED, "cpu: the system doesn't tell how much memory there is");
  }
  *free_bytes = static_cast<std::size_t>(page) * static_cast<std::size_t>(available);
  *total_bytes = static_cast<std::size_t>(page) * static_cast<std::size_t>(total);
  return TUTTI_OK;
}

}  // namespace

const tutti_memory_functions& memory_functions() noexcept {
  static constexpr tutti_memory_functions kFunctions{&allocate,       &release,    &allocate_pinned,
                                                     &release_pinned, &copy_bytes, &info};
  return kFunctions;
}

}  // namespace tutti::cpu
