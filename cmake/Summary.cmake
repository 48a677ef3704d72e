# SPDX-License-Identifier: Apache-2.0
# What was configured, at a glance.

get_target_property(library_type tutti TYPE)
string(TOLOWER "${library_type}" library_type)
string(REPLACE "_library" "" library_type "${library_type}")
set(mpi_text "off")
if(tutti_WITH_MPI)
  list(GET MPI_C_LIBRARIES 0 mpi_library)
  set(mpi_text "MPI ${MPI_C_VERSION} (${mpi_library})")
elseif(TUTTI_WITH_MPI STREQUAL "AUTO")
  set(mpi_text "off: not found (apt-get install libopenmpi-dev openmpi-bin)")
endif()
set(threads_text "OpenMP ${OpenMP_CXX_VERSION}")
if(TUTTI_THREADS_STD)
  set(threads_text "std::thread")
endif()
set(sanitizer_text "none")
if(TUTTI_SANITIZE)
  set(sanitizer_text "${TUTTI_SANITIZE}")
endif()

message(STATUS "Tutti ${PROJECT_VERSION}")
foreach(line IN ITEMS
    "library:    ${library_type}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    "oneDNN:     ${DNNL_VERSION} (${DNNL_LIBRARY})"
    "MPI:        ${mpi_text}"
    "threads:    ${threads_text}"
    "sanitizers: ${sanitizer_text}"
    "build:      tests ${TUTTI_BUILD_TESTS}, examples ${TUTTI_BUILD_EXAMPLES}, program tutti ${TUTTI_BUILD_CLI}, install ${TUTTI_INSTALL}"
    "ccache:     ${CMAKE_CXX_COMPILER_LAUNCHER}")
  message(STATUS "  ${line}")
endforeach()
