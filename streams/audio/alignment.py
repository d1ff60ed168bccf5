"""Align two sequences with as few differences as possible."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_MAX_CELLS = 1_000_000
"""Size limit of the table for the exact algorithm. Larger inputs use `difflib`: faster, but not always optimal."""

Run = tuple[int, int, int, int]
"""`(left_begin, left_end, right_begin, right_end)`: the two slices that correspond to each right."""


def matches(left: Sequence[str], right: Sequence[str]) -> Iterator[Run]:
    """Yield the runs that are equal in both sequences, in order. The items between two runs differ."""
    head = 0
    while head < min(len(left), len(right)) and left[head] == right[head]:
        head += 1
    tail = 0
    while tail < min(len(left), len(right)) - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    if head:
        yield 0, head, 0, head
    left_middle, right_middle = left[head : len(left) - tail], right[head : len(right) - tail]
    exact = len(left_middle) * len(right_middle) <= _MAX_CELLS
    pairs = _common(left_middle, right_middle) if exact else _runs(left_middle, right_middle)
    for at, to in pairs:
        yield head + at, head + at + 1, head + to, head + to + 1
    if tail:
        yield len(left) - tail, len(left), len(right) - tail, len(right)


def _common(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield a longest common subsequence as pairs of positions."""
    width = len(right) + 1
    lengths = [[0] * width for _ in range(len(left) + 1)]
    for at in range(len(left) - 1, -1, -1):
        row, below, item = lengths[at], lengths[at + 1], left[at]
        for to in range(width - 2, -1, -1):
            row[to] = below[to + 1] + 1 if item == right[to] else max(below[to], row[to + 1])
    at = to = 0
    while at < len(left) and to < len(right):
        if left[at] == right[to]:
            yield at, to
            at, to = at + 1, to + 1
        elif lengths[at + 1][to] >= lengths[at][to + 1]:
            at += 1
        else:
            to += 1


def _runs(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[int, int]]:
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            yield block.a + step, block.b + step
