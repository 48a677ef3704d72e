#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ending.sh PROGRAM WAY SECONDS TEXT LAUNCHER...: runs `LAUNCHER... PROGRAM WAY` and checks that the job ends within SECONDS with an exit code
# that is not 0 (for the ways `well` and `unmatched`: with 0), that TEXT stands in the output exactly once, and after everything that other ranks have printed.
# With `env://` as LAUNCHER it starts two processes itself.
set -u
program=$1 way=$2 seconds=$3 text=$4
shift 4

run_env() {
  export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 20000)) WORLD_SIZE=2
  RANK=1 "$program" "$way" &
  RANK=0 "$program" "$way"
  local first=$?
  wait $!
  local second=$?
  return $((first > second ? first : second))
}

output=$(mktemp)
trap 'rm -f "$output"' EXIT
begin=$(date +%s%N)
if [ "$1" = env:// ]; then
  (run_env) >"$output" 2>&1
else
  timeout 25 "$@" "$program" "$way" >"$output" 2>&1
fi
code=$?
milliseconds=$((($(date +%s%N) - begin) / 1000000))
cat "$output"
echo "exit code $code after $milliseconds ms"

failed=0
fail() {
  echo "FAILED: $1"
  failed=1
}
if [ "$way" = well ] || [ "$way" = unmatched ]; then
  [ $code -eq 0 ] || fail "the exit code is not 0"
else
  [ $code -ne 0 ] || fail "the exit code is 0"
fi
[ $milliseconds -le $((seconds * 1000)) ] || fail "the job took longer than $seconds s"
grep -q "has passed" "$output" && [ "$way" != well ] && fail "a rank went on"
if [ -n "$text" ]; then
  count=$(grep -c "$text" "$output")
  [ "$count" -eq 1 ] || fail "'$text' stands there $count times"
  last_step=$(grep -n "rank [0-9]* step" "$output" | tail -1 | cut -d: -f1)
  line=$(grep -n "$text" "$output" | head -1 | cut -d: -f1)
  [ "${line:-0}" -gt "${last_step:-0}" ] || fail "other ranks' output comes after the message"
fi
exit $failed
