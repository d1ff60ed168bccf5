"""Splits of an input, for tests of incremental parsers."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeVar

Whole = TypeVar("Whole", str, bytes)


def split(whole: Whole, at: Iterable[int]) -> list[Whole]:
    """Return `whole` split at these positions. Pieces may be empty."""
    positions = sorted(min(position, len(whole)) for position in at)
    return [whole[begin:end] for begin, end in pairwise([0, *positions, len(whole)])]


def by_byte(whole: bytes) -> list[bytes]:
    return split(whole, range(1, len(whole)))
