#!/usr/bin/env python3
"""Checks the include graph: a layer includes only itself and layers before it.

Also: every header starts with a comment and holds `#pragma once`, and public headers include
nothing but other public headers, the standard library, arrow/type_fwd.h and the headers of Arrow's
Status and Result (for the C data interface: arrow/c/abi.h).
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The order of the layers. Those in one tuple are peers: they may not include each other.
LAYERS = [
    ("base",),
    ("format",),
    ("runtime",),
    ("simd",),
    ("io",),
    ("encoding",),
    ("file",),
    ("table",),
    ("expr",),
    ("index/scalar", "index/vector", "index/text"),
    ("exec",),
    ("memwal",),
    ("db",),
    ("remote",),
    ("server",),
    ("capi",),
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# A layer that only needs what stands in its own list, although its rank would allow more.
ONLY = {"simd": {"simd", "base"}, "format": {"format"}, "base": {"base"}}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
PUBLIC_ALLOWED = {"arrow/type_fwd.h", "arrow/status.h", "arrow/result.h", "arrow/c/abi.h"}


def layer_of(path):
    """The layer of a path relative to src/, or None."""
    parts = path.split("/")
    for length in (2, 1):
        name = "/".join(parts[:length])
        if len(parts) > length and name in RANK:
            return name
    return None


def includes(path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def check_layer_file(path, problems):
    name = path.relative_to(ROOT / "src").as_posix()
    mine = layer_of(name)
    if mine is None:
        problems.append(f"src/{name}: folder is in no layer; add it to LAYERS in tools/check_includes.py")
        return
    for number, kind, target in includes(path):
        theirs = layer_of(target)
        where = f"src/{name}:{number}"
        if theirs is None:
            if kind == '"' and not (ROOT / "include" / target).exists():
                problems.append(f'{where}: "{target}" is neither a layer\'s file nor a public header')
            continue
        if theirs in ONLY.get(mine, {theirs}) and theirs == mine:
            continue
        allowed = RANK[theirs] < RANK[mine] and theirs in ONLY.get(mine, {theirs})
        if theirs != mine and not allowed:
            problems.append(f"{where}: {mine}/ may not include {target} ({theirs}/ is no layer below it)")


def check_header(path, problems):
    text = path.read_text(errors="replace")
    where = path.relative_to(ROOT)
    # A *-inl.h may be meant to be included once per instruction set.
    if "#pragma once" not in text and not path.name.endswith("-inl.h"):
        problems.append(f"{where}: no #pragma once")
    if not text.startswith("//"):
        problems.append(f"{where}: the first line must say what the file is for")


def check_public(path, problems):
    for number, kind, target in includes(path):
        public = (ROOT / "include" / target).exists()
        standard = kind == "<" and "/" not in target and not target.endswith((".hpp",))
        if not (public or standard or target in PUBLIC_ALLOWED):
            problems.append(f"{path.relative_to(ROOT)}:{number}: public headers may not include {target}")


def main():
    problems = []
    files = 0
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in (".h", ".cc"):
            files += 1
            check_layer_file(path, problems)
            if path.suffix == ".h":
                check_header(path, problems)
    for path in sorted((ROOT / "include").rglob("*.h")):
        files += 1
        check_header(path, problems)
        check_public(path, problems)
    for problem in problems:
        print(problem)
    print(f"include graph: {files} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
