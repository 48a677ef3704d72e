# SPDX-License-Identifier: Apache-2.0
# Finds hwloc as the imported target tutti::hwloc. Installed beside the package config, which needs it for a static Tutti.

find_path(HWLOC_INCLUDE_DIR hwloc.h)
find_library(HWLOC_LIBRARY hwloc)
mark_as_advanced(HWLOC_INCLUDE_DIR HWLOC_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(HWLOC REQUIRED_VARS HWLOC_LIBRARY HWLOC_INCLUDE_DIR)

if(HWLOC_FOUND AND NOT TARGET tutti::hwloc)
  add_library(tutti::hwloc UNKNOWN IMPORTED)
  set_target_properties(tutti::hwloc PROPERTIES
    IMPORTED_LOCATION "${HWLOC_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${HWLOC_INCLUDE_DIR}")
endif()
