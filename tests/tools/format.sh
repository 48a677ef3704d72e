#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# format.sh ROOT: every C++ file is formatted as .clang-format says.
set -euo pipefail

cd "$1"
formatter=$(command -v clang-format-14 || command -v clang-format)
find include src tests examples -name '.?*' -prune -o -type f \( -name '*.hpp' -o -name '*.h' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu' \) -print0 |
  xargs -0 -n 20 -P "$(nproc)" "$formatter" --dry-run --Werror
