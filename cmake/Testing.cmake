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
  target_link_libraries(${name} PRIVATE tutti_internal tutti_mpi ${objects} GTest::gtest GTest::gtest_main nlohmann_json::nlohmann_json)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  # Tests' own code compiles in half the time without optimising; those of kernels and the table of operations compute references in
  # long loops.
  if(arg_FLOOR STREQUAL kernels OR name STREQUAL op_table_test)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  else()
    target_compile_options(${name} PRIVATE -O0)
  endif()
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

# tutti_test(<name> FLOOR <floor> SOURCES <file>... [ALSO <floor>...] [LABELS <label>...] [MPI <ranks>...] [ENV <ranks>...] [TIMEOUT <seconds>])
#
# A GoogleTest program that links the floors up to FLOOR, and its ctest entry. Its labels are its floor and `unit`; LABELS
# adds more: `tsan` for what ThreadSanitizer is to see, `slow` for what the sanitizers leave out. With MPI the program runs under mpirun, once for
# each number of ranks, with the label `mpi`; with ENV in processes that meet over env://, with the label `env`. The target tests_<label> builds
# all programs of a label.
function(tutti_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FLOOR;TIMEOUT" "SOURCES;ALSO;LABELS;MPI;ENV")
  if(arg_MPI AND NOT tutti_WITH_MPI)
    if(NOT arg_ENV)
      return()
    endif()
    set(arg_MPI "")
  endif()
  tutti_test_executable(${name} FLOOR "${arg_FLOOR}" SOURCES ${arg_SOURCES} ALSO ${arg_ALSO})
  if(arg_MPI OR arg_ENV)
    set(timeout 60)
  else()
    set(timeout 300)
  endif()
  if(arg_TIMEOUT)
    set(timeout ${arg_TIMEOUT})
  endif()
  set(all_labels "")
  # One test of several ranks at a time: they want all cores.
  foreach(ranks IN LISTS arg_MPI)
    tutti_mpi_command(launcher ${ranks})
    tutti_add_test(${name}_${ranks}_ranks "mpi;${arg_FLOOR};${arg_LABELS}" ${timeout} "${TUTTI_MPI_TEST_ENVIRONMENT}" ${launcher} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}_${ranks}_ranks PROPERTIES PROCESSORS ${ranks} RUN_SERIAL ON)
    list(APPEND all_labels mpi)
  endforeach()
  foreach(ranks IN LISTS arg_ENV)
    tutti_add_test(${name}_env_${ranks}_ranks "env;${arg_FLOOR}" ${timeout} ""
                   bash "${PROJECT_SOURCE_DIR}/tests/support/env_ranks.sh" ${ranks} $<TARGET_FILE:${name}>)
    set_tests_properties(${name}_env_${ranks}_ranks PROPERTIES PROCESSORS ${ranks} RUN_SERIAL ON)
    list(APPEND all_labels env)
  endforeach()
  if(NOT all_labels)
    tutti_add_test(${name} "unit;${arg_FLOOR};${arg_LABELS}" ${timeout} "" ${name})
    set(all_labels unit)
  endif()
  list(APPEND all_labels ${arg_FLOOR} ${arg_LABELS})
  list(REMOVE_DUPLICATES all_labels)
  foreach(label IN LISTS all_labels)
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
endfunction()

# tutti_add_test(<name> <labels> <seconds> <environment> <command>...): a ctest entry with the environment that all tests have, and more.
function(tutti_add_test name labels seconds environment)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${seconds}
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;${TUTTI_TEST_ENVIRONMENT};${environment}")
endfunction()
