"""The depth of JSON, measured before it is decoded, at a cost per byte that does not depend on the content."""

from array import array
from bisect import bisect_left
from itertools import accumulate

from streams.wire.errors import InvalidParameter

MAX_DEPTH = 32
MAX_CONTAINERS = 10_000
"""A limit, because containers cost more time to decode than their content."""
_BRACKETS = b"[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
_HIDE = bytes.maketrans(_BRACKETS, b"____")
_CHANGES = bytes.maketrans(_BRACKETS, bytes([1, 255, 1, 255]))
"""The change of the level by each bracket, as a signed byte."""


def outside_strings(raw: bytes, *, in_string: bool = False) -> tuple[bytes, bool]:
    """Return `raw` with other characters for the brackets in its strings, and whether it ends in a string.

    `in_string`: whether `raw` begins in a string. `raw` must not end inside an escape sequence.
    """
    parts = raw.replace(rb"\\", b"__").replace(rb"\"", b"__").split(b'"')
    first = 0 if in_string else 1
    parts[first::2] = b'"'.join(parts[first::2]).translate(_HIDE).split(b'"') if parts[first::2] else []
    return b'"'.join(parts), len(parts) % 2 == first ^ 1


def levels(raw: bytes, *, before: int = 0) -> list[int]:
    """Return the level before the first bracket of `raw`, which is `before`, and the level after each."""
    return list(accumulate(array("b", raw.translate(_CHANGES, _OTHERS)), initial=before))


def check_nesting(raw: bytes) -> None:
    """Raise `InvalidParameter` if objects and arrays are too many, or nested too deeply."""
    if _opened(raw) <= MAX_DEPTH:
        return
    outside, _ = outside_strings(raw)
    if _opened(outside) > MAX_CONTAINERS:
        raise InvalidParameter(f"body has more than {MAX_CONTAINERS} objects and arrays")
    if max(levels(outside)) > MAX_DEPTH:
        raise InvalidParameter(f"body is nested deeper than {MAX_DEPTH} levels")


def _opened(raw: bytes) -> int:
    return raw.count(b"[") + raw.count(b"{")


def end_of_bracket(raw: bytes, number: int) -> int:
    """Return the position after a bracket of `raw`. The first has the number 1."""
    return bisect_left(range(len(raw)), number, key=lambda end: len(raw[:end].translate(None, _OTHERS)))
