#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compares Tutti's speed with PyTorch's and MPI's, installing and building what is missing:
#
#   bash tests/perf/run.sh [--pairs N] [name...]
#
# Prints one JSON object a line; --help lists the names. docs/benchmarks.md says how it measures. Wants an idle machine.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=$(cd "$here/../.." && pwd)
{
  bash "$source_dir/cmake/install-deps.sh" --tests
  bash "$here/setup-peer.sh"
  build_dir=$source_dir/build/perf
  if [ ! -e "$build_dir/build.ninja" ]; then
    cmake -G Ninja -S "$source_dir" -B "$build_dir" -DCMAKE_BUILD_TYPE=Release -DTUTTI_BUILD_EXAMPLES=OFF -DTUTTI_BUILD_CLI=OFF
  fi
  cmake --build "$build_dir" --target perf_ours perf_all_reduce
} >&2
exec python3 "$here/compare.py" --build "$build_dir/tests/perf" "$@"
