// SPDX-License-Identifier: Apache-2.0
/// \file
/// The library's version; CMake reads it from here.
#pragma once

#include "tutti/core/export.hpp"

#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0

namespace tutti {

/// Version of the library that is linked, as "major.minor.patch".
TUTTI_API const char* version() noexcept;

}  // namespace tutti
