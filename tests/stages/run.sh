#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh STAGE: one of the longer checks of tests/run.sh --full. Each builds in a folder of its own below build/.
set -euo pipefail

stage=$1
cd "$(dirname "$0")/../.."

# build_and_test PRESET FOLDER [CMAKE-OPTION...] [-- CTEST-OPTION...]: tests only if there is a `--`.
build_and_test() {
  local preset=$1 folder=$2 options=()
  shift 2
  while [ $# -gt 0 ] && [ "$1" != -- ]; do
    options+=("$1")
    shift
  done
  cmake --preset "$preset" -B "$folder" "${options[@]}" > /dev/null
  cmake --build "$folder"
  if [ "${1:-}" = -- ]; then
    shift
    ctest --test-dir "$folder" --output-on-failure --no-tests=error "$@"
  fi
}

# The same warning options as tests/run.sh --full: then the compiler cache has most of what the second builds need.
case "$stage" in
  # The second compiler has its own warnings. It builds no fast CPU kernels (its vectoriser doesn't know libm's vector functions), so its
  # build is compiled and not released.
  clang) build_and_test ci build/clang -DTUTTI_WERROR=ON -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ ;;
  asan) build_and_test asan build/asan -- -L '^(unit|mpi)$' -LE '^slow$' ;;
  tsan) build_and_test tsan build/tsan -- -L '^tsan$' ;;
  onednn3)
    root="${XDG_CACHE_HOME:-$HOME/.cache}/tutti/onednn-2023.2.0"
    build_and_test ci build/onednn3 -DTUTTI_WERROR=ON "-DTUTTI_ONEDNN_ROOT=$root" -- -L '^(kernels|ops)$'
    ;;
  no_mpi) build_and_test ci build/no_mpi -DTUTTI_WERROR=ON -DTUTTI_WITH_MPI=OFF -- -L '^(comm|parallel)$' ;;
  mpi_repeated) ctest --test-dir build/ci --output-on-failure --no-tests=error -L '^mpi$' --repeat until-fail:20 ;;
  *)
    echo "run.sh: wanted clang, asan, tsan, onednn3, no_mpi or mpi_repeated, given '$stage'" >&2
    exit 2
    ;;
esac
