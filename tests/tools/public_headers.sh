#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# public_headers.sh ROOT COMPILER: every public header compiles alone, without a warning, with nothing but include/ to see.
set -euo pipefail

root=$1
compiler=$2
export compiler
cd "$root/include"

compile_alone() {
  printf '#include "%s"\n' "$1" |
    "$compiler" -std=c++20 -I . -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only -x c++ - ||
    { echo "does not compile alone: include/$1"; return 1; }
}
export -f compile_alone

count=$(find tutti -name '*.hpp' | wc -l)
echo "$count headers"
[ "$count" -gt 0 ]
find tutti -name '*.hpp' -print0 | sort -z | xargs -0 -n 1 -P "$(nproc)" bash -c 'compile_alone "$1" || exit 1' _
