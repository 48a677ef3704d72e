# SPDX-License-Identifier: Apache-2.0
# Warnings of Tutti's own translation units; never part of what a consumer compiles with.

add_library(tutti_warnings INTERFACE)
target_compile_options(tutti_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${TUTTI_WERROR}>:-Werror>)
