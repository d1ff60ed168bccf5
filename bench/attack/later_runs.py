"""Write the rows of a run of some attacks into a report, in place of the older rows of these attacks."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.generated_section import between, write_between

_LATER = re.compile(r"Later: (?P<names>[^.]*)\. (?P<run>.*)")


def write_rows(path: Path, marks: tuple[str, str], tables: str, *, names: Sequence[str], run: str) -> None:
    """Replace the rows of the attacks `names` by those of `tables`, or add them. `run` describes the measurement.

    Rows keep their order in the report; those of new attacks come last.
    """
    text = between(path, marks)
    intro, old = _paragraphs(text), _tables(text)
    new = _tables(tables)
    if [table[:1] for table in old] != [table[:1] for table in new]:
        raise ValueError(f"{path} has no tables with these columns: write them with all attacks first")
    merged = "\n".join("".join(_merged(*pair)) for pair in zip(old, new, strict=True))
    later = [*_without(intro, names), f"Later: {', '.join(names)}. {run}"]
    write_between(path, marks, "\n" + "".join(f"{line}\n\n" for line in later) + merged + "\n")


def _paragraphs(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("|")]


def _tables(text: str) -> list[list[str]]:
    """Return the lines of each table."""
    found: list[list[str]] = [[]]
    for line in text.splitlines(keepends=True):
        if line.startswith("|"):
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [table for table in found if table]


def _merged(old: list[str], new: list[str]) -> list[str]:
    rows = {_name(line): line for line in old[2:]} | {_name(line): line for line in new[2:]}
    return [*old[:2], *rows.values()]


def _name(line: str) -> str:
    return line.split("|")[1].strip()


def _without(paragraphs: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return the paragraphs, of which those about later runs do not mention `names` any more."""
    kept = []
    for paragraph in paragraphs:
        if later := _LATER.fullmatch(paragraph):
            left = [name for name in later["names"].split(", ") if name not in names]
            if left:
                kept.append(f"Later: {', '.join(left)}. {later['run']}")
        else:
            kept.append(paragraph)
    return kept
