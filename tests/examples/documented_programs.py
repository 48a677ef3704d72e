#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""documented_programs.py ROOT COMPILER: every ```cpp block of README.md and docs/ compiles as it stands, without a warning.

Fragments are marked ```c++ and left out. README.md must have one whole program of about 30 lines.
"""
import pathlib
import re
import subprocess
import sys

BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.MULTILINE | re.DOTALL)


def main():
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    failures = 0
    programs = {}
    for path in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        for number, text in enumerate(BLOCK.findall(path.read_text(encoding="utf-8")), 1):
            name = f"{path.name} block {number}"
            programs[name] = text
            result = subprocess.run([compiler, "-std=c++20", "-I", str(root / "include"), "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                                     "-x", "c++", "-"], input=text, text=True)
            print(f"{name}: {len(text.splitlines())} lines, {'compiles' if result.returncode == 0 else 'does not compile'}")
            failures += result.returncode != 0
    readme = [text for name, text in programs.items() if name.startswith("README") and "int main(" in text]
    if len(readme) != 1 or len(readme[0].splitlines()) > 36:
        sys.exit("README.md: wanted one program of about 30 lines")
    sys.exit(1 if failures else 0)


main()
