#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# exported_symbols.sh LIBRARY: a shared libtutti exports names of namespace tutti (with their type information and tables) and C functions
# that begin with tutti_, and nothing else.
set -euo pipefail

symbols=$(nm --dynamic --defined-only "$1" | awk '{ print $NF }')
ours='^(tutti_|_ZN[KRO]*5tutti|_ZT[A-Z]N5tutti|_ZT[hvc][n0-9_]*.*N5tutti|_ZGVN5tutti)'
count=$(grep -cE "$ours" <<< "$symbols" || true)
echo "$count symbols of tutti"
[ "$count" -gt 0 ]
if grep -vE "$ours" <<< "$symbols"; then
  echo "exported, and not tutti's"
  exit 1
fi
