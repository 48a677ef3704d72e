# SPDX-License-Identifier: Apache-2.0
# Warnings of Tutti's own translation units; never part of what a consumer compiles with.

add_library(tutti_warnings INTERFACE)
target_compile_options(tutti_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  # GCC 12 takes the list behind a default member initialiser such as `nn::Buffer b{*this, "b", zeros({2})}` for dangling.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-dangling-pointer>
  $<$<BOOL:${TUTTI_WERROR}>:-Werror>)
