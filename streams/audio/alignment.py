"""Align two sequences with as few differences as possible."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_MAX_CELLS = 1_000_000
"""Size limit of the table for the exact algorithm. Larger inputs use `difflib`: faster, but not always optimal."""

Run = tuple[int, int, int, int]
"""`(left_begin, left_end, right_begin, right_end)`: two slices that correspond to each other."""


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
    for i, j in pairs:
        yield head + i, head + i + 1, head + j, head + j + 1
    if tail:
        yield len(left) - tail, len(left), len(right) - tail, len(right)


def _common(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield a longest common subsequence as pairs of positions."""
    width = len(right) + 1
    lengths = [[0] * width for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        row, below, item = lengths[i], lengths[i + 1], left[i]
        for j in range(width - 2, -1, -1):
            row[j] = below[j + 1] + 1 if item == right[j] else max(below[j], row[j + 1])
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            yield i, j
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1


def _runs(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[int, int]]:
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            yield block.a + step, block.b + step
