"""Reads the measured figures from the tables in the guides."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.generated_section import between
from bench.operations.report import MARKS
from bench.tables.__main__ import MARKS as TABLE_MARKS
from deploy.running import Failed

_ANSWERS = re.compile(r"The answers have (\d+) deltas, one every (\d+) ms")
_TABLE_NAME = re.compile(r"^`(.*)`$")
_GIB = 2**30
_ROWS = 100_000_000


@dataclass(frozen=True, slots=True)
class Measured:
    """`costs`: those of one call by its name, then by the heading of the column. Times are in microseconds."""

    deltas: int
    stream_s: float
    """How long the measured streams took."""
    costs: Mapping[str, Mapping[str, float]]
    memory: Mapping[str, Mapping[str, float]]
    """Bytes in Valkey by kind of stream, then by heading."""
    index_bytes: Mapping[str, float]
    """Bytes of indexes that must be in memory for each row, by table."""


def read_figures(sizing: Path, tables: Path) -> Measured:
    """Read what `bench.operations` has written into `sizing`, and `bench.tables` into `tables`."""
    try:
        text, grown = between(sizing, MARKS), between(tables, TABLE_MARKS)
    except ValueError as error:
        raise Failed(str(error)) from None
    answers = _ANSWERS.search(text)
    costs, memory, sizes = _table(text, "call"), _table(text, "stream"), _table(grown, "table")
    if answers is None or not costs or not memory or not sizes:
        raise Failed(f"{sizing} or {tables} has no tables: run bench.operations and bench.tables with --report")
    index_bytes = {name: row["in memory, GiB"] * _GIB / _ROWS for name, row in sizes.items()}
    deltas, pace_ms = int(answers[1]), int(answers[2])
    return Measured(deltas, deltas * pace_ms / 1000, costs, memory, index_bytes)


def _table(text: str, heading: str) -> dict[str, dict[str, float]]:
    """Return the first table with figures whose first column has this heading, by the first cell of each row."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line[:1] == "|"]
    heads = next((row for row in rows if row[0] == heading and len(row) > 2), None)
    found: dict[str, dict[str, float]] = {}
    if heads is None:
        return found
    for row in rows[rows.index(heads) + 2 :]:
        if len(row) != len(heads) or not row[1][:1].isdecimal():
            break
        cells = zip(heads[1:], row[1:], strict=True)
        found[_TABLE_NAME.sub(r"\1", row[0])] = {head: float(cell.replace(",", "")) for head, cell in cells}
    return found
