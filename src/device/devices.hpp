// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"
#include "backend/registry.hpp"
#include "tutti/device/device.hpp"

namespace tutti {

inline constexpr int kMaxDevices = 64;  // of a type

// The table of a device's backend. Throws DeviceError with the reason if there is none.
inline const tutti_backend& backend_of(Device device) {
  return backend::get(static_cast<int>(device.type()));
}

// Throws DeviceError if the machine has no such device.
void check_device(Device device);

}  // namespace tutti
