#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh STAGE: one of the longer checks of tests/run.sh --full. Each builds in a folder of its own below build/.
set -euo pipefail

stage=$1
cd "$(dirname "$0")/../.."

# configure_and_build PRESET FOLDER TARGETS [CMAKE-OPTION...]: TARGETS are separated by blanks.
configure_and_build() {
  cmake --preset "$1" -B "$2" "${@:4}" > /dev/null
  # shellcheck disable=SC2086
  cmake --build "$2" --target $3
}

# run_tests FOLDER CTEST-OPTION...
run_tests() {
  ctest --test-dir "$1" --output-on-failure --no-tests=error "${@:2}"
}

case "$stage" in
  # The second compiler has its own warnings. It builds no fast CPU kernels (its vectoriser doesn't know libm's vector functions), so its
  # build is compiled, without optimising, and not run.
  clang)
    configure_and_build ci build/clang all -DTUTTI_WERROR=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++
    ;;
  asan)
    configure_and_build asan build/asan all
    # Two tests at a time, of one thread but where a test asks for more; those of several ranks run alone.
    TUTTI_NUM_THREADS=1 TUTTI_BIND_THREADS=0 run_tests build/asan -j2 -L '^(unit|mpi|env)$' -LE '^slow$'
    ;;
  asan_slow) run_tests build/asan -L '^slow$' ;;
  tsan)
    configure_and_build tsan build/tsan tests_tsan
    run_tests build/tsan -L '^tsan$'
    ;;
  onednn3)
    root="${XDG_CACHE_HOME:-$HOME/.cache}/tutti/onednn-2023.2.0"
    configure_and_build ci build/onednn3 "tests_kernels tests_ops" -DTUTTI_WERROR=ON "-DTUTTI_ONEDNN_ROOT=$root"
    run_tests build/onednn3 -L '^(kernels|ops)$'
    ;;
  no_mpi)
    configure_and_build ci build/no_mpi all -DTUTTI_WERROR=ON -DTUTTI_WITH_MPI=OFF
    run_tests build/no_mpi -L '^(comm|data|parallel|examples)$'
    ;;
  mpi_repeated) run_tests build/ci -L '^mpi$' --repeat until-fail:20 ;;
  *)
    echo "run.sh: wanted clang, asan, asan_slow, tsan, onednn3, no_mpi or mpi_repeated, given '$stage'" >&2
    exit 2
    ;;
esac
