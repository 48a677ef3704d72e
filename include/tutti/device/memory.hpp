// SPDX-License-Identifier: Apache-2.0
/// \file
/// The caching allocator: memory that tensors free is kept and handed out again, 64-byte aligned. It is
/// thread-safe and keeps the CPU's small blocks in each thread, so that making a small tensor takes no lock.
#pragma once

#include <cstdint>

#include "tutti/core/export.hpp"
#include "tutti/device/device.hpp"

namespace tutti {

/// Exact figures of one device's allocator. Bytes count whole blocks: requests are rounded up, by at most 20
/// % above 1 KiB and to multiples of 64 bytes below.
struct MemoryStats {
  std::int64_t allocated_bytes = 0;  ///< In use by tensors.
  std::int64_t peak_allocated_bytes =
      0;                            ///< Greatest value of allocated_bytes since reset_peak_memory_stats.
  std::int64_t reserved_bytes = 0;  ///< Held from the system: in use or cached.
  std::int64_t allocations = 0;     ///< Requests so far.
  std::int64_t system_allocations =
      0;  ///< Requests that went to the system: constant in a warm training step.
};

/// The figures of a device. Throws DeviceError if there is no such device, as do the others.
TUTTI_API MemoryStats memory_stats(Device device = {});
/// Sets peak_allocated_bytes to allocated_bytes.
TUTTI_API void reset_peak_memory_stats(Device device = {});
/// Returns cached memory that no tensor uses to the system; waits for work that may still use it. What other
/// threads than the caller keep in their own caches (at most 128 KiB a size class of the CPU) stays.
TUTTI_API void empty_cache(Device device = {});

}  // namespace tutti
