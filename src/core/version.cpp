// SPDX-License-Identifier: Apache-2.0
#include "tutti/core/version.hpp"

#define TUTTI_TEXT_OF(x) #x
#define TUTTI_TEXT(x) TUTTI_TEXT_OF(x)

namespace tutti {

const char* version() noexcept {
  return TUTTI_TEXT(TUTTI_VERSION_MAJOR) "." TUTTI_TEXT(TUTTI_VERSION_MINOR) "." TUTTI_TEXT(
      TUTTI_VERSION_PATCH);
}

}  // namespace tutti
