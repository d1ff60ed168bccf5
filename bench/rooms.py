"""The rooms of the code: `python -m bench.rooms` (or `make rooms`) counts what a reader has to hold in mind.

A room is a folder of Python modules. What stands directly in it, modules and rooms alike, are its parts. A part has
an arrow to another one of the same room if any of its modules imports any module of that one, however often. Levels
are the longest chain of arrows. `--check` fails if a room has more modules than the bound and is not a table of
equals, or if many of its modules share the first word of their names.
"""

import argparse
import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import quantiles

ROOT = Path(__file__).parents[1]
PRODUCT = ("app", "actors", "vendors", "storage", "streams", "deploy", "clients")
OTHERS = ("bench", "tests")
BOUND = 20
"""The most modules that a room may have, apart from `__init__.py` and `__main__.py`."""
EQUALS = {
    "bench": "one command each, and what they share",
    "storage/configs/kinds": "one config kind each",
    "tests/browser": "one part of the pages each",
    "vendors/sandbox/signin": "one platform each",
    "vendors/signin": "one platform each",
}
"""Rooms that may be larger, because whoever looks for one module there knows its name, and why that is so."""
SHARED = 4
"""If this many modules of a room begin with the same word and `_`, they belong in a folder of that name."""
PREFIXES = {
    "tests/vendors/chat/openai_": "the tests of two modules",
    "tests/vendors/speech/google_": "the tests of two modules",
}
"""Prefixes that stay, as `room/word_`, and why."""


@dataclass(frozen=True)
class Room:
    name: str
    modules: int
    levels: int | None
    """`None`: there is a circle."""
    arrows: int


def rooms() -> list[Room]:
    """Return all rooms, those of the product first."""
    parts: dict[str, set[str]] = defaultdict(set)
    modules: dict[str, int] = defaultdict(int)
    for path in paths((*PRODUCT, *OTHERS)):
        *folders, file = path.relative_to(ROOT).with_suffix("").parts
        if file not in {"__init__", "__main__"}:
            modules["/".join(folders)] += 1
        for depth in range(1, len(folders) + 1):
            parts["/".join(folders[:depth])].add([*folders, file][depth])
    arrows = arrows_by_room()
    return [
        Room(name, modules[name], levels(arrows[name], parts[name]), len(arrows[name])) for name in sorted(parts)
    ]


def arrows_by_room() -> Mapping[str, set[tuple[str, str]]]:
    """Return the arrows between the parts of each room, as pairs."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for path in paths((*PRODUCT, *OTHERS)):
        source = path.relative_to(ROOT).with_suffix("").parts
        for target in imports(path):
            common = next((at for at, (a, b) in enumerate(zip(source, target, strict=False)) if a != b), None)
            if common:  # Neither other packages nor the same module.
                found["/".join(source[:common])].add((source[common], target[common]))
    return found


def levels(arrows: Iterable[tuple[str, str]], parts: Iterable[str]) -> int | None:
    """Return the number of parts in the longest chain, or `None` if parts import each other in a circle."""
    below: dict[str, set[str]] = {part: set() for part in parts}
    for source, target in arrows:
        below[source].add(target)
    heights: dict[str, int] = {}
    try:
        for part in TopologicalSorter(below).static_order():
            heights[part] = 1 + max((heights[other] for other in below[part]), default=0)
    except CycleError:
        return None
    return max(heights.values(), default=0)


@cache
def paths(packages: tuple[str, ...]) -> list[Path]:
    """Return the modules that git knows."""
    command = [
        "git",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        *(f"{package}/*.py" for package in packages),
    ]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for path in (ROOT / line for line in listed.splitlines()) if path.exists()]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path) -> set[tuple[str, ...]]:
    """Return the modules of the repository that a module imports, as parts of their names."""
    found = set()
    for node in ast.walk(tree(path)):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                for alias in names:
                    found.update(known(f"{module}.{alias.name}") or known(module))
            case ast.Import(names=names):
                for alias in names:
                    found.update(known(alias.name))
    return found


@cache
def known(name: str) -> list[tuple[str, ...]]:
    parts = tuple(name.split("."))
    base = ROOT.joinpath(*parts)
    return [parts] if parts[0] in {*PRODUCT, *OTHERS} and base.with_suffix(".py").exists() else []


def sizes(packages: tuple[str, ...]) -> Iterator[str]:
    """Yield lines about the length of files and functions."""
    sources = {path: path.read_text() for path in paths(packages)}
    files = [source.count("\n") for source in sources.values() if source]
    functions = [
        (node.end_lineno or node.lineno)
        - node.body[ast.get_docstring(node) is not None and len(node.body) > 1].lineno
        + 1
        for path in sources
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    comments = sum(line.lstrip().startswith("#") for source in sources.values() for line in source.splitlines())
    yield f"lines of files:      {spread(files)}, {sum(files):,} in all"
    yield f"lines of functions:  {spread(functions)}, without signature and docstring"
    yield f"full-line comments:  {1_000 * comments / sum(files):.1f} per 1,000 lines"


def spread(values: Sequence[int]) -> str:
    deciles = quantiles(values, n=10)
    return f"p50 {deciles[4]:.0f}, p90 {deciles[8]:.0f}, max {max(values)}"


def report() -> Iterator[str]:
    found = rooms()
    yield f"{'room':40} {'modules':>8} {'levels':>7} {'arrows':>7}"
    for room in found:
        if room.modules > BOUND // 2 or "/" not in room.name:
            yield f"{room.name:40} {room.modules:8} {room.levels or 'circle':>7} {room.arrows:7}"
    for title, packages in (("product", PRODUCT), ("tests and benchmarks", OTHERS)):
        own = [room for room in found if room.name.split("/")[0] in packages]
        largest = max(own, key=lambda room: room.modules)
        yield f"\n{title}: {len(own)} rooms, {sum(room.arrows for room in own):,} arrows"
        yield f"largest room:        {largest.name} with {largest.modules} modules"
        yield from sizes(packages)
    documents = sorted(path.name for path in ROOT.glob("*.md"))
    yield f"\ndocuments at the root: {len(documents)} ({', '.join(documents)})"


def too_large() -> Iterator[str]:
    found = {room.name: room.modules for room in rooms()}
    for name, modules in found.items():
        if modules > BOUND and name not in EQUALS:
            yield f"{name} has {modules} modules, more than {BOUND}: give those of one noun a folder"
    for name in EQUALS.keys() - {name for name, modules in found.items() if modules > BOUND}:
        yield f"{name} has {BOUND} modules or fewer: remove it from EQUALS in bench/rooms.py"


def shared_prefixes() -> Iterator[str]:
    """Yield a line for each prefix that has enough modules for a folder. Tests of pytest share `test_` anyway."""
    counts: dict[str, int] = defaultdict(int)
    for path in paths((*PRODUCT, *OTHERS)):
        word, separator, _ = path.stem.removeprefix("test_").partition("_")
        if word and separator:
            counts[f"{path.parent.relative_to(ROOT).as_posix()}/{word}_"] += 1
    for prefix, count in sorted(counts.items()):
        if count >= SHARED and prefix not in PREFIXES:
            yield f"{count} modules begin with {prefix}: give them a folder"
    for prefix in sorted(PREFIXES):
        if counts[prefix] < SHARED:
            yield f"fewer than {SHARED} modules begin with {prefix}: remove it from PREFIXES in bench/rooms.py"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.rooms", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only fail if modules need a folder")
    if parser.parse_args(arguments).check:
        faults = [*too_large(), *shared_prefixes()]
        print("\n".join(faults) or "No room is too large, and no prefix should be a folder")
        return 1 if faults else 0
    print("\n".join(report()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
