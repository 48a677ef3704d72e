// SPDX-License-Identifier: Apache-2.0
// Finds the backend of a device type: the CPU's is linked in, CUDA's is a plugin opened on first use.
#pragma once

#include <atomic>
#include <string>

#include "backend/backend.h"
#include "tutti/core/error.hpp"

namespace tutti::backend {

inline constexpr int kTypes = 2;

namespace detail {
// The tables found so far. Constant-initialised, so that static destructors may still ask.
extern std::atomic<const tutti_backend*> tables[kTypes];
// Looks for the backend of a type whose table is not there yet.
const tutti_backend& load(int type);
}  // namespace detail

// type: 0 the CPU, 1 CUDA (the numeric values of DeviceType, which stands a floor higher). Throws DeviceError
// with the reason if there is none.
inline const tutti_backend& get(int type) {
  const tutti_backend* table = detail::tables[type].load(std::memory_order_acquire);
  return table != nullptr ? *table : detail::load(type);
}
// Null instead of an exception; `reason` (may be null) says why.
const tutti_backend* try_get(int type, std::string* reason) noexcept;

// Turns a status into the exception of its kind; `where` names the operation.
[[noreturn, gnu::cold]] void throw_status(const tutti_backend& backend, tutti_status status,
                                          const char* where);

inline void check(const tutti_backend& backend, tutti_status status, const char* where) {
  if (status != TUTTI_OK) [[unlikely]]
    throw_status(backend, status, where);
}

}  // namespace tutti::backend
