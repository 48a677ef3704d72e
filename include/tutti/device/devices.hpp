// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of device (device.hpp is the class).
#pragma once

#include "tutti/device/device.hpp"
#include "tutti/device/memory.hpp"
#include "tutti/device/stream.hpp"
