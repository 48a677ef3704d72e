# SPDX-License-Identifier: Apache-2.0
# Each folder below src/ is a floor of docs/architecture.md and becomes one OBJECT library, tutti_<folder>. The library `tutti` gathers
# them; a test links only those up to its own floor (and the few that Testing.cmake names), so that a call upwards doesn't link.

# From the lowest floor to the highest.
set(TUTTI_FLOORS core backend device kernels tensor autograd comm ops nn optim data profiler parallel)

set(TUTTI_BASELINE_FLAGS "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(TUTTI_BASELINE_FLAGS -march=x86-64-v2)
endif()

# What all of Tutti's own translation units are compiled with and see.
add_library(tutti_internal INTERFACE)
target_compile_features(tutti_internal INTERFACE cxx_std_20)
target_include_directories(tutti_internal INTERFACE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_include_directories(tutti_internal SYSTEM INTERFACE "${RANDOM123_INCLUDE_DIR}")
target_compile_definitions(tutti_internal INTERFACE
  $<$<BOOL:${TUTTI_THREADS_STD}>:TUTTI_PARALLEL_STD_THREAD>)
target_link_libraries(tutti_internal INTERFACE
  tutti_warnings tutti_sanitizers Threads::Threads OpenMP::OpenMP_CXX $<LINK_ONLY:tutti::dnnl> tutti::hwloc fmt::fmt
  ZLIB::ZLIB ${CMAKE_DL_LIBS})

# A parent project may have no build type; the library is fast all the same.
get_property(is_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT is_multi_config AND NOT CMAKE_BUILD_TYPE)
  target_compile_options(tutti_internal INTERFACE -O3)
endif()

# What floor comm and the tests see besides: whether there is MPI, and its C interface.
add_library(tutti_mpi INTERFACE)
if(tutti_WITH_MPI)
  target_compile_definitions(tutti_mpi INTERFACE TUTTI_WITH_MPI OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(tutti_mpi INTERFACE MPI::MPI_C)
endif()

# The libraries that some floors alone see, so that another oneDNN or MPI is a matter of few files.
set(TUTTI_FLOOR_LIBRARIES_comm tutti_mpi)
set(TUTTI_FLOOR_LIBRARIES_kernels tutti::dnnl)
set(TUTTI_FLOOR_LIBRARIES_profiler tutti::dnnl)

# tutti_add_objects(<target> <floor>): an empty OBJECT library that belongs to a floor.
function(tutti_add_objects target floor)
  add_library(${target} OBJECT)
  target_link_libraries(${target} PRIVATE tutti_internal)
  set_target_properties(${target} PROPERTIES
    CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  set_property(GLOBAL APPEND PROPERTY TUTTI_OBJECTS_${floor} ${target})
endfunction()

# The floor whose CMakeLists.txt, or that of a folder in it, is being read.
function(tutti_current_floor result)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}/src" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REGEX REPLACE "/.*" "" floor "${folder}")
  set(${result} "${floor}" PARENT_SCOPE)
endfunction()

# tutti_sources(<file>...): adds files, relative to the current folder, to the current floor.
function(tutti_sources)
  tutti_current_floor(floor)
  if(NOT TARGET tutti_${floor})
    tutti_add_objects(tutti_${floor} ${floor})
    target_compile_options(tutti_${floor} PRIVATE ${TUTTI_BASELINE_FLAGS})
    target_link_libraries(tutti_${floor} PRIVATE ${TUTTI_FLOOR_LIBRARIES_${floor}})
  endif()
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE files)
  target_sources(tutti_${floor} PRIVATE ${files})
endfunction()

# tutti_isa_sources(<file>...): compiles files once for each instruction set, with TUTTI_ISA defined as v2, v3 or v4. The maths flags let
# GCC vectorise calls of libm and keep infinities and NaN exact, which -ffast-math would not.
function(tutti_isa_sources)
  tutti_current_floor(floor)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE files)
  foreach(level v2 v3 v4)
    set(target tutti_${floor}_${level})
    if(NOT TARGET ${target})
      tutti_add_objects(${target} ${floor})
      target_compile_definitions(${target} PRIVATE TUTTI_ISA=${level})
      # GCC 12 wrongly finds its own AVX-512 intrinsics to read uninitialised variables (GCC bug 105593). clang 14 has no vector
      # functions of libm to put into `omp simd` loops, and says so.
      target_compile_options(${target} PRIVATE
        $<IF:$<BOOL:${TUTTI_SANITIZE}>,-O1,-O3> -fno-math-errno -fno-trapping-math
        $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-uninitialized>
        $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>)
      if(TUTTI_BASELINE_FLAGS)
        target_compile_options(${target} PRIVATE -march=x86-64-${level})
      endif()
    endif()
    target_sources(${target} PRIVATE ${files})
  endforeach()
endfunction()

# tutti_gather_floors(): makes the library `tutti` of all floors.
function(tutti_gather_floors)
  set(objects "")
  foreach(floor IN LISTS TUTTI_FLOORS)
    get_property(floor_objects GLOBAL PROPERTY TUTTI_OBJECTS_${floor})
    foreach(target IN LISTS floor_objects)
      list(APPEND objects $<TARGET_OBJECTS:${target}>)
    endforeach()
  endforeach()
  add_library(tutti ${objects})
  add_library(tutti::tutti ALIAS tutti)
  target_compile_features(tutti PUBLIC cxx_std_20)
  target_include_directories(tutti PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(tutti PRIVATE
    $<BUILD_INTERFACE:tutti_sanitizers> Threads::Threads OpenMP::OpenMP_CXX tutti::dnnl tutti::hwloc fmt::fmt ZLIB::ZLIB ${CMAKE_DL_LIBS})
  if(tutti_WITH_MPI)
    target_link_libraries(tutti PRIVATE MPI::MPI_C)
  endif()
  set_target_properties(tutti PROPERTIES
    LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/tutti.map")
  get_target_property(type tutti TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    target_link_options(tutti PRIVATE "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/tutti.map")
    if(NOT TUTTI_SANITIZE)
      target_link_options(tutti PRIVATE "LINKER:--no-undefined")
    endif()
  endif()
endfunction()

# tutti_program(<file>...): the command-line program `tutti`, which uses the library as its users do.
function(tutti_program)
  add_executable(tutti_cli ${ARGN})
  set_target_properties(tutti_cli PROPERTIES OUTPUT_NAME tutti CXX_EXTENSIONS OFF)
  target_link_libraries(tutti_cli PRIVATE tutti::tutti tutti_warnings tutti_sanitizers CLI11::CLI11)
endfunction()
