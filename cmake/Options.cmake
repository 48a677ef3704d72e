# SPDX-License-Identifier: Apache-2.0
# Every option of the build. What serves only Tutti's own developers is off when another project adds this one.

option(BUILD_SHARED_LIBS "Build libtutti as a shared library" OFF)
option(TUTTI_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(TUTTI_BUILD_EXAMPLES "Build the example trainers" ${PROJECT_IS_TOP_LEVEL})
option(TUTTI_BUILD_CLI "Build the command-line program tutti" ${PROJECT_IS_TOP_LEVEL})
option(TUTTI_INSTALL "Generate the install rules" ${PROJECT_IS_TOP_LEVEL})
option(TUTTI_WERROR "Treat warnings in Tutti's own files as errors" OFF)
option(TUTTI_THREADS_STD "Run parallel_for on std::thread in place of OpenMP (for ThreadSanitizer)" OFF)
set(TUTTI_WITH_MPI AUTO CACHE STRING "Build the MPI backend: AUTO (when MPI is found), ON or OFF")
set_property(CACHE TUTTI_WITH_MPI PROPERTY STRINGS AUTO ON OFF)
set(TUTTI_SANITIZE "" CACHE STRING "Sanitizers of the build: empty, 'address;undefined', 'undefined' or 'thread'")
set(TUTTI_ONEDNN_ROOT "" CACHE PATH "Prefix of another oneDNN (2.6 or newer, 3.x) than the system's")

if(PROJECT_IS_TOP_LEVEL)
  get_property(is_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT is_multi_config AND NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()
