#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""header_cost.py ROOT COMPILER: <tutti/tutti.hpp> compiles within 1.5 times the time of the standard headers that it includes."""
import pathlib
import re
import resource
import subprocess
import sys

LIMIT = 1.5
ROUNDS = 7


def standard_headers(root):
    """What the public headers include of the standard library, by name."""
    names = set()
    for path in (root / "include" / "tutti").rglob("*.hpp"):
        names.update(re.findall(r"^#include <([a-z_]+(?:\.h)?)>", path.read_text(encoding="utf-8"), re.MULTILINE))
    return sorted(names)


def compile_seconds(compiler, root, text):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([compiler, "-std=c++20", "-O2", "-I", str(root / "include"), "-c", "-x", "c++", "-", "-o", "/dev/null"],
                   input=text, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    standard = "".join(f"#include <{name}>\n" for name in standard_headers(root))
    # Interleaved, and the least of each: what else runs on the machine only ever adds time.
    pairs = [(compile_seconds(compiler, root, standard), compile_seconds(compiler, root, "#include <tutti/tutti.hpp>\n"))
             for _ in range(ROUNDS)]
    alone, ours = (min(times) for times in zip(*pairs))
    print(f"standard headers {alone:.2f} s, tutti.hpp {ours:.2f} s, ratio {ours / alone:.2f}, wanted at most {LIMIT}")
    sys.exit(0 if ours <= LIMIT * alone else 1)


main()
