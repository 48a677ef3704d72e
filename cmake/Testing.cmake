# SPDX-License-Identifier: Apache-2.0

# A floor's test links the objects of all floors up to it; and of these above it, which own bodies that it declares: the CPU's table of functions
# (declared by backend, defined by kernels) and the differentiable members of Tensor (declared by tensor, defined by ops).
set(TUTTI_ALSO_backend device kernels)
set(TUTTI_ALSO_device kernels)
set(TUTTI_ALSO_tensor autograd ops)
set(TUTTI_ALSO_autograd ops)

# The objects that a test of a floor links.
function(tutti_objects_of result floor)
  list(FIND TUTTI_FLOORS "${floor}" last)
  if(last EQUAL -1)
    message(FATAL_ERROR "tutti_test: FLOOR wanted one of ${TUTTI_FLOORS}, given '${floor}'")
  endif()
  math(EXPR count "${last} + 1")
  list(SUBLIST TUTTI_FLOORS 0 ${count} floors)
  list(APPEND floors ${TUTTI_ALSO_${floor}} ${ARGN})
  list(REMOVE_DUPLICATES floors)
  set(objects "")
  foreach(name IN LISTS floors)
    get_property(floor_objects GLOBAL PROPERTY TUTTI_OBJECTS_${name})
    list(APPEND objects ${floor_objects})
  endforeach()
  set(${result} "${objects}" PARENT_SCOPE)
endfunction()

# tutti_test_executable(<name> FLOOR <floor> SOURCES <file>... [ALSO <floor>...]): a GoogleTest program without a ctest entry.
function(tutti_test_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FLOOR" "SOURCES;ALSO")
  tutti_objects_of(objects "${arg_FLOOR}" ${arg_ALSO})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE tutti_internal tutti_mpi ${objects} GTest::gtest GTest::gtest_main)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${name} PRIVATE
    TUTTI_SOURCE_DIR="${PROJECT_SOURCE_DIR}" TUTTI_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden")
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

# tutti_mpi_command(<result> <ranks>): the launcher in front of a program's path. --oversubscribe alone only permits more ranks than
# cores. Ranks that do share cores must yield while they wait, and mpirun would bind them all to the same ones.
function(tutti_mpi_command result ranks)
  cmake_host_system_information(RESULT cores QUERY NUMBER_OF_PHYSICAL_CORES)
  set(command ${MPIEXEC_EXECUTABLE} -np ${ranks} --oversubscribe)
  if(cores LESS ranks)
    list(APPEND command --bind-to none --mca mpi_yield_when_idle 1)
  endif()
  set(${result} "${command}" PARENT_SCOPE)
endfunction()

# tutti_test(<name> FLOOR <floor> SOURCES <file>... [ALSO <floor>...] [LABELS <label>...] [MPI <ranks>...] [TIMEOUT <seconds>])
#
# A GoogleTest program that links the floors up to FLOOR, and its ctest entry. Its labels are its floor and `unit`, with MPI `mpi`; LABELS
# adds more: `tsan` for what ThreadSanitizer is to see, `slow` for what the sanitizers leave out. With MPI the program runs under mpirun, once for
# each number of ranks. The target tests_<label> builds all programs of a label.
function(tutti_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FLOOR;TIMEOUT" "SOURCES;ALSO;LABELS;MPI")
  if(arg_MPI AND NOT tutti_WITH_MPI)
    return()
  endif()
  tutti_test_executable(${name} FLOOR "${arg_FLOOR}" SOURCES ${arg_SOURCES} ALSO ${arg_ALSO})
  if(arg_MPI)
    set(labels mpi ${arg_FLOOR} ${arg_LABELS})
    set(timeout 60)
    set(environment ${TUTTI_MPI_TEST_ENVIRONMENT})
    set(tests "")
    foreach(ranks IN LISTS arg_MPI)
      tutti_mpi_command(launcher ${ranks})
      add_test(NAME ${name}_${ranks}_ranks COMMAND ${launcher} $<TARGET_FILE:${name}>)
      # One MPI test at a time: its ranks want all cores.
      set_tests_properties(${name}_${ranks}_ranks PROPERTIES PROCESSORS ${ranks} RUN_SERIAL ON)
      list(APPEND tests ${name}_${ranks}_ranks)
    endforeach()
  else()
    set(labels unit ${arg_FLOOR} ${arg_LABELS})
    set(timeout 300)
    set(environment "")
    add_test(NAME ${name} COMMAND ${name})
    set(tests ${name})
  endif()
  foreach(label IN LISTS labels)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
  if(arg_TIMEOUT)
    set(timeout ${arg_TIMEOUT})
  endif()
  set_tests_properties(${tests} PROPERTIES
    LABELS "${labels}" TIMEOUT ${timeout}
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;${TUTTI_TEST_ENVIRONMENT};${environment}")
endfunction()
