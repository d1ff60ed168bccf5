"""Integers of JSON beyond 64 bits, which orjson would read as the nearest floats, or refuse."""

import re
import secrets
from collections.abc import Callable
from typing import Any, Self

import orjson

_MIN, _MAX = -(2**63), 2**64 - 1
"""The integers that orjson reads exactly."""
_DIGITS = 19
"""Integers with fewer digits have 64 bits."""
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_LARGEST_FLOAT_DIGITS = 309
_INTEGER = re.compile(rb"(?<![\w.+-])-?[1-9][0-9]{%d,}+(?![\w.])" % (_DIGITS - 1))


class LongInteger(float):
    """An integer of JSON beyond 64 bits. It is the float that orjson reads, and is written with all its digits."""

    __slots__ = ("digits",)
    digits: str

    def __new__(cls, digits: str) -> Self:
        # Converting thousands of digits would take time, and the result is infinity.
        is_finite = len(digits.removeprefix("-")) <= _LARGEST_FLOAT_DIGITS
        value = super().__new__(cls, digits if is_finite else "-inf" if digits[0] == "-" else "inf")
        value.digits = digits
        return value

    def __repr__(self) -> str:
        return self.digits

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return self.digits == other.digits if isinstance(other, LongInteger) else NotImplemented

    def __ne__(self, other: object) -> bool:  # A float has one of its own.
        return not self == other

    def __hash__(self) -> int:
        return hash(self.digits)


def json_of(value: Any) -> Any:
    """Return JSON for a value that orjson cannot encode: the `default` of its `dumps`."""
    if isinstance(value, LongInteger):
        return orjson.Fragment(value.digits)
    raise TypeError(f"{type(value).__name__} is not JSON")


def loads_exact(raw: bytes) -> Any:
    """Decode JSON like `orjson.loads`, but with each integer beyond 64 bits as a `LongInteger`."""
    if raw.translate(_ZEROS).find(b"0" * _DIGITS) < 0:  # Ten times as fast as a regular expression.
        return orjson.loads(raw)
    name, integers = secrets.token_hex(16), dict[str, LongInteger]()

    def replaced(found: re.Match[bytes]) -> bytes:
        digits = found[0]
        if len(digits) <= _DIGITS + 1 and _MIN <= int(digits) <= _MAX:
            return digits
        key = f"{name}-{len(integers)}"
        integers[key] = LongInteger(digits.decode())
        return b'"%b"' % key.encode()

    shortened = _outside_strings(raw, lambda part: _INTEGER.sub(replaced, part))
    if not integers:
        return orjson.loads(raw)
    try:
        value = filled(orjson.loads(shortened), integers)
    except orjson.JSONDecodeError:
        return orjson.loads(raw)  # For its error, which names the position.
    return orjson.loads(raw) if integers else value  # An integer that is left is the name of a member.


def _outside_strings(raw: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return `raw` with changes to its parts outside strings. Takes linear time, even if `raw` is not JSON."""
    parts, at = [], 0
    for number, part in enumerate(raw.replace(rb"\\", b"__").replace(rb"\"", b"__").split(b'"')):
        as_sent = raw[at : at + len(part)]
        parts.append(as_sent if number % 2 else change(as_sent))
        at += len(part) + 1
    return b'"'.join(parts)


def filled(value: Any, values: dict[str, Any]) -> Any:
    """Return a JSON value with each text that is a key of `values` replaced by its value, which it then lacks."""
    if isinstance(value, dict):
        return {name: filled(member, values) for name, member in value.items()}
    if isinstance(value, list):
        return [filled(item, values) for item in value]
    return values.pop(value, value) if isinstance(value, str) else value
