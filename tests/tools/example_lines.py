#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""example_lines.py EXAMPLES: mnist.cpp stays short, and mnist_ddp.cpp differs from it by a few lines only."""
import difflib
import pathlib
import sys

MOST_LINES = 110
MOST_DIFFERENT = 10


def different_lines(left, right):
    """The lines that diff prints with < or >: a replaced one counts twice."""
    blocks = difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes()
    return sum(i2 - i1 + j2 - j1 for tag, i1, i2, j1, j2 in blocks if tag != "equal")


def main():
    single, distributed = ((pathlib.Path(sys.argv[1]) / name).read_text(encoding="utf-8").splitlines()
                           for name in ("mnist.cpp", "mnist_ddp.cpp"))
    difference = different_lines(single, distributed)
    print(f"mnist.cpp: {len(single)} lines, wanted at most {MOST_LINES}")
    print(f"mnist_ddp.cpp: {difference} lines differ, wanted 1 to {MOST_DIFFERENT}")
    sys.exit(0 if len(single) <= MOST_LINES and 1 <= difference <= MOST_DIFFERENT else 1)


main()
