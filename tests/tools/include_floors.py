#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that files include only their own floor and lower ones, and public headers nothing of a third party.

    include_floors.py ROOT        checks the tree; prints one line a violation
    include_floors.py --self-test checks that each kind of violation is found

The floors are those of docs/architecture.md.
"""
import pathlib
import re
import sys
import tempfile

FLOOR = {
    "core": 0, "backend": 1, "device": 2, "kernels": 3, "cuda": 3, "tensor": 4, "autograd": 5, "comm": 5, "ops": 6,
    "nn": 7, "optim": 7, "amp": 7, "data": 7, "io": 7, "profiler": 7, "metrics": 7, "models": 7, "parallel": 8,
    "cli": 9, "examples": 9,
}
# Folders of one floor don't see each other, but for these (who, whom).
SIBLINGS = {("models", "nn"), ("amp", "optim"), ("profiler", "data")}
# The CUDA plugin is a world of its own: it sees these headers of ours alone, and nobody sees it.
CUDA_SEES = ("backend/backend.h", "kernels/functors/", "tutti/core/dtype.hpp", "tutti/core/half.hpp", "tutti/core/export.hpp", "cuda/")
STANDARD = set(
    """algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits clocale cmath compare
    complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar deque exception
    execution filesystem forward_list fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list
    locale map memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore set
    shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view strstream syncstream system_error thread
    tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector version
    stddef.h stdint.h stdbool.h""".split())
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".hpp", ".h", ".cpp", ".cuh", ".cu", ".inc"}


def includes_of(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(2)


def folder_of_include(name):
    """The folder that an include names, `tutti` for the umbrella headers, or None for a header that is not ours."""
    parts = name.split("/")
    if parts[0] == "tutti":
        parts = parts[1:]
        if len(parts) == 1:
            return "tutti"
    return parts[0] if len(parts) > 1 and parts[0] in FLOOR else None


def may_include(who, whom, name):
    if who == "cuda":
        return name.startswith(CUDA_SEES)
    if who == whom:
        return True
    return whom != "cuda" and FLOOR[whom] < FLOOR[who] or (who, whom) in SIBLINGS


def check_file(root, path):
    """Yields a line of text for each violation in a file of include/tutti, src or examples."""
    relative = path.relative_to(root)
    is_public = relative.parts[0] == "include"
    is_user = relative.parts[0] == "examples" or relative.parts[:2] == ("src", "cli")
    if relative.parts[0] == "examples":
        folder = "examples"
    else:
        inside = relative.parts[2:] if is_public else relative.parts[1:]
        folder = inside[0] if len(inside) > 1 else "tutti"
    if folder != "tutti" and folder not in FLOOR:
        yield f"{relative}: folder '{folder}' is on no floor"
        return
    for number, name in includes_of(path):
        where = f"{relative}:{number}: includes {name}"
        target = folder_of_include(name)
        if is_public and target is None and name not in STANDARD:
            yield f"{where}: neither Tutti's nor the standard library's, in a public header"
        if is_public and target is not None and not name.startswith("tutti/"):
            yield f"{where}: a private header, in a public one"
        if is_user and target not in (None, "cli") and not name.startswith("tutti/"):
            yield f"{where}: a private header; programs use the public ones"
        if target == "tutti" and folder != "tutti" and FLOOR[folder] < FLOOR["cli"]:
            yield f"{where}: an umbrella header, which is for users"
        if target in FLOOR and folder in FLOOR and not is_user and not may_include(folder, target, name):
            yield f"{where}: '{folder}' (floor {FLOOR[folder]}) may not see '{target}' (floor {FLOOR[target]})"


def check_tree(root):
    paths = [p for top in ("include/tutti", "src", "examples") for p in sorted((root / top).rglob("*")) if p.suffix in SUFFIXES]
    return len(paths), [line for path in paths for line in check_file(root, path)]


def self_test():
    planted = {
        "include/tutti/core/a.hpp": ("#include <fmt/format.h>", "neither Tutti's nor"),
        "include/tutti/nn/b.hpp": ('#include "nn/private.hpp"', "a private header, in a public one"),
        "src/tensor/c.cpp": ('#include "tutti/nn/module.hpp"', "may not see 'nn'"),
        "src/comm/d.cpp": ('#include "autograd/engine.hpp"', "may not see 'autograd'"),
        "src/optim/e.cpp": ('  #  include <tutti/nn/module.hpp>', "may not see 'nn'"),
        "src/nn/f.cpp": ('#include "cuda/launch.hpp"', "may not see 'cuda'"),
        "src/cuda/m.cu": ('#include "tutti/core/error.hpp"', "may not see 'core'"),
        "src/ops/g.cpp": ("#include <tutti/tutti.hpp>", "an umbrella header"),
        "src/cli/h.cpp": ('#include "comm/mpi/progress.hpp"', "a private header; programs"),
        "src/unknown/i.cpp": ("", "is on no floor"),
    }
    allowed = {
        "src/profiler/j.cpp": '#include "tutti/data/loader.hpp"\n#include <fmt/format.h>\n',
        "include/tutti/tutti.hpp": '#include "tutti/nn.hpp"\n#include "tutti/core/error.hpp"\n',
        "src/cuda/runtime/k.cu": '#include "backend/backend.h"\n#include "kernels/functors/unary.hpp"\n',
        "examples/l.cpp": "#include <tutti/tutti.hpp>\n",
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {**{n: line for n, (line, _) in planted.items()}, **allowed}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text + "\n", encoding="utf-8")
        _, found = check_tree(root)
    expected = sorted(planted)
    problems = [f"not found: {name} ({text})" for name, (_, text) in planted.items()
                if not any(line.startswith(name) and text in line for line in found)]
    problems += [f"wrongly found: {line}" for line in found if line.split(":")[0] not in expected]
    return problems


def main():
    if sys.argv[1:] == ["--self-test"]:
        problems = self_test()
    elif len(sys.argv) == 2:
        count, problems = check_tree(pathlib.Path(sys.argv[1]).resolve())
        print(f"{count} files")
        if count == 0:
            problems.append("no files found")
    else:
        sys.exit(__doc__)
    print("\n".join(problems))
    sys.exit(1 if problems else 0)


main()
