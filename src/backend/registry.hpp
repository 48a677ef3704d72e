// SPDX-License-Identifier: Apache-2.0
// Finds the backend of a device type: the CPU's is linked in, CUDA's is a plugin opened on first use.
#pragma once

#include <string>

#include "backend/backend.h"
#include "tutti/core/error.hpp"

namespace tutti::backend {

// type: 0 the CPU, 1 CUDA (the numeric values of DeviceType, which stands a floor higher). Throws DeviceError with the reason if there is none.
const tutti_backend& get(int type);
// Null instead of an exception; `reason` says why.
const tutti_backend* try_get(int type, std::string* reason) noexcept;

// Turns a status into the exception of its kind; `where` names the operation.
[[noreturn, gnu::cold]] void throw_status(const tutti_backend& backend, tutti_status status, const char* where);

inline void check(const tutti_backend& backend, tutti_status status, const char* where) {
  if (status != TUTTI_OK) [[unlikely]] throw_status(backend, status, where);
}

}  // namespace tutti::backend
