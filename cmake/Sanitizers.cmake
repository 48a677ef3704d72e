# SPDX-License-Identifier: Apache-2.0
# TUTTI_SANITIZE: flags for Tutti's own targets, and the environment of their tests.

set(TUTTI_TEST_ENVIRONMENT "")
set(TUTTI_MPI_TEST_ENVIRONMENT "")
add_library(tutti_sanitizers INTERFACE)
if(TUTTI_SANITIZE)
  if("address" IN_LIST TUTTI_SANITIZE AND "thread" IN_LIST TUTTI_SANITIZE)
    message(FATAL_ERROR "TUTTI_SANITIZE: address and thread exclude each other, given '${TUTTI_SANITIZE}'")
  endif()
  foreach(sanitizer IN LISTS TUTTI_SANITIZE)
    if(NOT sanitizer MATCHES "^(address|undefined|thread)$")
      message(FATAL_ERROR "TUTTI_SANITIZE: wanted address, undefined or thread, given '${sanitizer}'")
    endif()
  endforeach()
  list(JOIN TUTTI_SANITIZE "," sanitizer_list)
  # A finding ends the program, so that a test fails on it. No vptr: its check opens a pipe, and reports what it likes where a process has no
  # descriptors left, which tests bring about.
  target_compile_options(tutti_sanitizers INTERFACE
    -fsanitize=${sanitizer_list} -fno-sanitize-recover=all -fno-sanitize=vptr -fno-omit-frame-pointer -g1)
  target_link_options(tutti_sanitizers INTERFACE -fsanitize=${sanitizer_list})

  set(suppressions "${PROJECT_SOURCE_DIR}/tests/tools/sanitizers")
  # Requests that can't be met are refused, as without a sanitizer: tests ask for them. Open MPI's own leaks are recognised by their full
  # stacks only, which the fast unwinder doesn't give; it is turned off where MPI runs.
  list(APPEND TUTTI_TEST_ENVIRONMENT
    "ASAN_OPTIONS=allocator_may_return_null=1"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "LSAN_OPTIONS=suppressions='${suppressions}/leak.supp':print_suppressions=0"
    "TSAN_OPTIONS=suppressions='${suppressions}/thread.supp':halt_on_error=1:allocator_may_return_null=1")
  list(APPEND TUTTI_MPI_TEST_ENVIRONMENT "ASAN_OPTIONS=allocator_may_return_null=1:fast_unwind_on_malloc=0")
endif()
