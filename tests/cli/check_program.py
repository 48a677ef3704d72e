#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_program.py TUTTI env | errors | all_reduce RANKS [LAUNCHER...]: what the program `tutti` prints, and its exit code."""
import math
import os
import re
import subprocess
import sys


def run(*command, **variables):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=50, env={**os.environ, **variables})


def check(condition, text):
    if not condition:
        sys.exit(f"wrong: {text}")


def env(tutti):
    result = run(tutti, "env")
    print(result.stdout)
    check(result.returncode == 0, result.stderr)
    facts = dict(line.split(None, 1) for line in result.stdout.splitlines())
    for name in ("tutti", "compiler", "oneDNN", "MPI", "CUDA", "CPU", "features", "kernels", "cores", "threads", "ranks"):
        check(name in facts, f"no line '{name}'")
    check(run(tutti, "--version").stdout == f"tutti {facts['tutti']}\n", "--version and env differ")


def all_reduce(tutti, ranks, launcher):
    """Sizes from 4 to 4,096 bytes by factors of 4; columns that fit together; no wrong element."""
    for dtype, element, memory in (("float32", 4, ()), ("float32", 4, ("--plain-memory",)), ("bfloat16", 2, ()), ("int64", 8, ())):
        result = run(*launcher, tutti, "bench", "all-reduce", "-b", "4", "-e", "4K", "-f", "4", "-n", "3", "-w", "1", "-d", dtype,
                     *memory)
        check(result.returncode == 0, result.stdout + result.stderr)
        check(f"{ranks} rank" in result.stdout, "number of ranks")
        rows = [line.split() for line in result.stdout.splitlines() if not line.startswith("#")]
        check(len(rows) == 6, result.stdout)
        for (size, count, kind, time, algorithm, bus, wrong), wanted in zip(rows, (4, 16, 64, 256, 1024, 4096)):
            wanted = max(wanted, element)
            check((int(size), int(count), kind, wrong) == (wanted, wanted // element, dtype, "0"), result.stdout)
            check(abs(float(algorithm) - int(size) / 1e3 / float(time)) <= 0.01 + 0.2 * float(algorithm), result.stdout)
            factor = 2 * (int(ranks) - 1) / int(ranks)
            check(math.isclose(float(bus), factor * float(algorithm), abs_tol=0.011 * max(1, factor)), result.stdout)
    print(result.stdout)


def errors(tutti):
    for arguments, text in ((("bench", "all-reduce", "-d", "float8"), r"float8 not in \{.*float32"), (("bench",), "subcommand is required"),
                            ((), "subcommand is required"), (("bench", "all-reduce", "-n", "0"), "--iters"),
                            (("train",), "subcommand is required")):
        result = run(tutti, *arguments)
        check(result.returncode != 0, f"{arguments}: exit code 0")
        check(re.search(text, result.stdout + result.stderr), f"{arguments}: '{result.stdout}{result.stderr}' has no '{text}'")
    for variable, value, words in (("TUTTI_ISA", "v9", "v2, v3"), ("TUTTI_NUM_THREADS", "many", "integer"), ("TUTTI_TIMEOUT_S", "-1", "number"),
                                   ("TUTTI_COMM_BACKEND", "smoke", "shm or mpi")):
        result = run(tutti, "env", **{variable: value})
        check(result.returncode == 1, f"{variable}={value}: exit code {result.returncode}")
        check(re.fullmatch(rf"tutti: .*{variable}.*\n", result.stderr) and words in result.stderr and value in result.stderr,
              f"{variable}={value}: this is not one message: {result.stderr}")
    for arguments in (("env",), ("--help",), ("bench", "all-reduce", "-e", "4")):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run((tutti, *arguments), stdout=full, stderr=subprocess.PIPE, text=True, timeout=50)
        check(result.returncode == 1 and result.stderr == "tutti: the output could not be written\n",
              f"{arguments} into a full device: {result.returncode}, {result.stderr}")


def main():
    tutti, what, *rest = sys.argv[1:]
    if what == "env":
        env(tutti)
    elif what == "errors":
        errors(tutti)
    else:
        all_reduce(tutti, rest[0], rest[1:])


main()
