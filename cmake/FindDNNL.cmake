# SPDX-License-Identifier: Apache-2.0
# Finds oneDNN 2.x or 3.x as the imported target tutti::dnnl. oneDNN's own package config is not used: Debian's makes every consumer
# find and link OpenCL, which is a matter of libdnnl.so alone. DNNL_ROOT_HINT is the prefix of another oneDNN.
# Installed beside the package config, which needs it for a static Tutti.

if(DNNL_ROOT_HINT)
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp PATHS "${DNNL_ROOT_HINT}" PATH_SUFFIXES include NO_DEFAULT_PATH)
  find_library(DNNL_LIBRARY dnnl PATHS "${DNNL_ROOT_HINT}" PATH_SUFFIXES lib lib64 NO_DEFAULT_PATH)
else()
  find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(DNNL_LIBRARY dnnl)
endif()
mark_as_advanced(DNNL_INCLUDE_DIR DNNL_LIBRARY)

set(DNNL_VERSION "")
if(DNNL_INCLUDE_DIR)
  file(STRINGS "${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" dnnl_version_lines REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH)")
  string(REGEX MATCHALL "[0-9]+" dnnl_version_numbers "${dnnl_version_lines}")
  list(JOIN dnnl_version_numbers "." DNNL_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(DNNL REQUIRED_VARS DNNL_LIBRARY DNNL_INCLUDE_DIR VERSION_VAR DNNL_VERSION)

if(DNNL_FOUND AND NOT TARGET tutti::dnnl)
  add_library(tutti::dnnl UNKNOWN IMPORTED)
  set_target_properties(tutti::dnnl PROPERTIES
    IMPORTED_LOCATION "${DNNL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${DNNL_INCLUDE_DIR}")
endif()
