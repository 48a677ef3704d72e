// SPDX-License-Identifier: Apache-2.0
/// \file
/// The caching allocator: memory that tensors free is kept and handed out again, 64-byte aligned.
#pragma once

#include <cstdint>

#include "tutti/core/export.hpp"
#include "tutti/device/device.hpp"

namespace tutti {

/// Figures of one device's allocator. Bytes.
struct MemoryStats {
  std::int64_t allocated_bytes = 0;       ///< In use by tensors.
  std::int64_t peak_allocated_bytes = 0;  ///< Greatest value of allocated_bytes since reset_peak_memory_stats.
  std::int64_t reserved_bytes = 0;        ///< Held from the system: in use or cached.
  std::int64_t allocations = 0;           ///< Requests so far.
  std::int64_t system_allocations = 0;    ///< Requests that went to the system: constant in a warm training step.
};

TUTTI_API MemoryStats memory_stats(Device device = {});
TUTTI_API void reset_peak_memory_stats(Device device = {});
/// Returns cached memory that no tensor uses to the system.
TUTTI_API void empty_cache(Device device = {});

}  // namespace tutti
