"""A whole cut into pieces: parsers must not care where."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeVar

Whole = TypeVar("Whole", str, bytes)


def split(whole: Whole, at: Iterable[int]) -> list[Whole]:
    """`whole` cut at these places; pieces may be empty."""
    places = sorted(min(place, len(whole)) for place in at)
    return [whole[begin:end] for begin, end in pairwise([0, *places, len(whole)])]


def by_byte(whole: bytes) -> list[bytes]:
    return split(whole, range(1, len(whole)))
