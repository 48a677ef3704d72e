# SPDX-License-Identifier: Apache-2.0

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
  # A finding ends the program, so that a test fails on it.
  target_compile_options(tutti_sanitizers INTERFACE
    -fsanitize=${sanitizer_list} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_link_options(tutti_sanitizers INTERFACE -fsanitize=${sanitizer_list})
endif()
