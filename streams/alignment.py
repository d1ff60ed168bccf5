"""Two sequences side by side with as few differences as can be."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_MOST_CELLS = 1_000_000
"""Of what differs; beyond, runs in common are looked for, which is quicker and not always the best."""

Run = tuple[int, int, int, int]
"""`a[begin:end]` beside `b[begin:end]`."""


def matches(one: Sequence[str], other: Sequence[str]) -> Iterator[Run]:
    """Runs that are equal in both, in order; what lies between two of them differs."""
    head = 0
    while head < min(len(one), len(other)) and one[head] == other[head]:
        head += 1
    tail = 0
    while tail < min(len(one), len(other)) - head and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    if head:
        yield 0, head, 0, head
    middle, beside = one[head : len(one) - tail], other[head : len(other) - tail]
    pairs = _common(middle, beside) if len(middle) * len(beside) <= _MOST_CELLS else _runs(middle, beside)
    for at, to in pairs:
        yield head + at, head + at + 1, head + to, head + to + 1
    if tail:
        yield len(one) - tail, len(one), len(other) - tail, len(other)


def _common(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int]]:
    """A longest common subsequence, as pairs of positions."""
    width = len(other) + 1
    lengths = [[0] * width for _ in range(len(one) + 1)]
    for at in range(len(one) - 1, -1, -1):
        row, below, wanted = lengths[at], lengths[at + 1], one[at]
        for to in range(width - 2, -1, -1):
            row[to] = below[to + 1] + 1 if wanted == other[to] else max(below[to], row[to + 1])
    at = to = 0
    while at < len(one) and to < len(other):
        if one[at] == other[to]:
            yield at, to
            at, to = at + 1, to + 1
        elif lengths[at + 1][to] >= lengths[at][to + 1]:
            at += 1
        else:
            to += 1


def _runs(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int]]:
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            yield block.a + step, block.b + step
