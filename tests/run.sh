#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds Tutti and passes its tests, installing what is missing:
#
#   bash tests/run.sh              the tests
#   bash tests/run.sh --full       and what takes longer, each a test of its own: format, clang, sanitizers, both oneDNNs, header cost
#   bash tests/run.sh --nightly    and all of that, with the MPI tests many times over and what sanitizers make slow
#
# Whatever stands behind these goes to ctest: bash tests/run.sh -R reducer. Ends with ctest's closing lines; the exit status is 0 if and only
# if everything passed.
set -euo pipefail

source_dir=$(cd "$(dirname "$0")/.." && pwd)
dependencies=(--tests)
warnings_as_errors=OFF
ctest_options=()
case "${1:-}" in
  --full) dependencies=(--full); warnings_as_errors=ON; ctest_options=(-C Full); shift ;;
  --nightly) dependencies=(--full); warnings_as_errors=ON; ctest_options=(-C Nightly); shift ;;
  --help | -h) sed -n '4,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac

bash "$source_dir/cmake/install-deps.sh" "${dependencies[@]}"

cd "$source_dir"
build_dir=build/ci
# Warnings are errors for the compilers that --full runs with; others know other warnings.
cmake --preset ci "-DTUTTI_WERROR=$warnings_as_errors"
cmake --build --preset ci

exec ctest --test-dir "$build_dir" --output-on-failure --no-tests=error "${ctest_options[@]}" "$@"
