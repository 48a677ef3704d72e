#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Trains a convolutional network on Fashion-MNIST on two ranks under mpirun, installing and building what is missing:
#
#   bash examples/demo.sh [--data DIR] [--ranks N] [options of the trainer, examples/mnist_ddp.cpp]
#
# DIR holds the four gzip IDX files; without it the Debian package dataset-fashion-mnist is used.
set -euo pipefail

caller_dir=$PWD
source_dir=$(cd "$(dirname "$0")/.." && pwd)
data=""
ranks=2
trainer_options=()
while [ $# -gt 0 ]; do
  case "$1" in
    --data | --ranks)
      if [ $# -lt 2 ]; then
        echo "demo.sh: $1 wants a value" >&2
        exit 2
      fi
      if [ "$1" = --data ]; then data=$2; else ranks=$2; fi
      shift 2
      ;;
    --help | -h) sed -n '4,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) trainer_options+=("$1"); shift ;;
  esac
done

if ! [[ "$ranks" =~ ^[1-9][0-9]{0,3}$ ]]; then
  echo "demo.sh: --ranks wanted 1 to 9999, given '$ranks'" >&2
  exit 2
fi

if [ -n "$data" ]; then
  bash "$source_dir/cmake/install-deps.sh"
  [ "${data#/}" != "$data" ] || data=$caller_dir/$data
else
  bash "$source_dir/cmake/install-deps.sh" --data
  data=/usr/share/datasets/fashion-mnist
fi

build_dir=$source_dir/build/demo
if [ ! -e "$build_dir/build.ninja" ]; then
  cmake -G Ninja -S "$source_dir" -B "$build_dir" -DCMAKE_BUILD_TYPE=Release -DTUTTI_BUILD_TESTS=OFF -DTUTTI_BUILD_CLI=OFF
fi
cmake --build "$build_dir" --target mnist_ddp

# A rank gets its share of the physical cores that this shell may use. Ranks that must share cores are not bound, and yield while they wait.
allowed_cpus=$(taskset -pc $$ | sed 's/.*: //' | tr ',' '\n' | while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done)
cores=$(lscpu -p=CPU,CORE,SOCKET | grep -v '^#' | grep -E "^($(echo "$allowed_cpus" | paste -sd '|')),"  | cut -d, -f2,3 | sort -u | wc -l)
cores_per_rank=$((cores / ranks))
if [ "$cores_per_rank" -ge 1 ]; then
  placement=(--map-by "slot:PE=$cores_per_rank" --bind-to core)
else
  placement=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
fi

# mpirun gives its ranks a terminal of its own, whatever its output is: tell them whether a line may be overwritten.
if [ -t 1 ]; then TUTTI_PROGRESS=live; else TUTTI_PROGRESS=plain; fi
export TUTTI_PROGRESS
# Open MPI refuses to run as root unless both are set.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec mpirun -np "$ranks" "${placement[@]}" "$build_dir/examples/mnist_ddp" --data "$data" "${trainer_options[@]}"
