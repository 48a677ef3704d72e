#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# isa_symbols.sh LEVEL OBJECT...: the objects compiled for the instruction set LEVEL (v2, v3, v4) define no weak symbol, and no symbol whose
# name lacks the level. Otherwise the linker might pick this level's copy for everybody, and the library would end with SIGILL elsewhere.
set -euo pipefail

level=$1
shift
echo "$# objects for $level"
found=$(nm --defined-only --extern-only --demangle "$@" | awk -v level="$level" '
  $1 ~ /^[0-9a-f]+$/ && NF >= 3 {
    symbol = $0
    sub(/^[^ ]+ [^ ]+ /, "", symbol)
    if ($2 ~ /[WVu]/ || symbol !~ ("(^|[^a-z0-9])" level "([^a-z0-9]|$)")) print $2, symbol
  }')
if [ -n "$found" ]; then
  echo "symbols that other objects could be linked to:"
  echo "$found"
  exit 1
fi
