#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# env_ranks.sh RANKS PROGRAM...: runs PROGRAM in so many processes that meet over env://, without a launcher of MPI. Ends with the greatest of
# their exit codes.
set -u
ranks=$1
shift
export MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)) WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$ranks
processes=()
for ((rank = 0; rank < ranks; ++rank)); do
  RANK=$rank LOCAL_RANK=$rank "$@" &
  processes+=($!)
done
code=0
for process in "${processes[@]}"; do
  wait "$process" || { own=$?; code=$((own > code ? own : code)); }
done
exit "$code"
