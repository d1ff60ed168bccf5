"""JSON and timestamps in the format of the interface. All JSON is encoded and decoded here."""

import json  # noqa: TID251 - orjson reads every number with a fraction as a float
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import orjson

from streams.wire.errors import InvalidParameter
from streams.wire.long_integers import json_of, loads_exact
from streams.wire.nesting import check_nesting

ZERO_TIME = "0001-01-01T00:00:00Z"
_LEVELS_AROUND = 16
_INTEGER_CHARACTERS = 20
"""Python refuses to convert thousands of digits."""
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)

dumps: Callable[..., bytes] = partial(orjson.dumps, default=json_of)
"""Encode JSON."""
dumps_plain = orjson.dumps
"""Encode JSON without a `LongInteger`: for events, because `dumps` takes 0.1 µs longer."""
LOG_LINE = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z
"""`option` of `dumps` for log lines: append a newline, format times as `rfc3339` does."""
INDENTED = orjson.OPT_INDENT_2
"""`option` of `dumps` for JSON that is read by people."""

encoded = orjson.Fragment
"""JSON that `dumps` copies into its output unchanged."""


def decimal_number(value: Decimal) -> orjson.Fragment:
    """Return `value` for `dumps`, which writes it as a JSON number with all its digits."""
    return orjson.Fragment(f"{value:f}")


loads = orjson.loads
"""Decode JSON that no client sent, such as database rows or vendor messages. Raises `ValueError` if invalid.

Integers beyond 64 bits become floats. `loads_exact` keeps them, at little cost.
"""


def is_encodable(value: Any) -> bool:
    """Return whether decoded JSON can be encoded again as a part of other JSON. orjson refuses 255 levels."""
    for _ in range(_LEVELS_AROUND):
        value = [value]
    try:
        dumps(value)
    except TypeError:
        return False
    return True


def loads_request(raw: bytes, *, exact: bool = False) -> Any:
    """Decode JSON sent by a client. Integers beyond 64 bits are kept, see `LongInteger`.

    With `exact`, each of these, and a number that is no integer, is a `Decimal` of the digits sent.

    Raises `InvalidParameter` if it is invalid, has too many objects and arrays, nests them too deeply, or contains
    U+0000, which PostgreSQL's `text` type cannot store.
    """
    check_nesting(raw)
    try:
        value = loads_exact(raw)
        if exact:  # After orjson, because Python's own decoder accepts more than JSON.
            value = json.loads(raw.decode(), parse_float=_decimal, parse_int=_integer)
    except orjson.JSONDecodeError as error:
        raise InvalidParameter(f"body is not valid JSON: {error.msg} at byte {error.pos}") from None
    if rb"\u0000" in raw and rb"\u0000" in raw.replace(rb"\\", b"__"):
        raise InvalidParameter("body must not contain the character U+0000")
    return value


def _decimal(literal: str) -> Decimal:
    try:
        return Decimal(literal)
    except InvalidOperation:
        raise InvalidParameter("body has a number whose exponent is out of range") from None


def _integer(literal: str) -> int | Decimal:
    return int(literal) if len(literal) <= _INTEGER_CHARACTERS else Decimal(literal)


def rfc3339(moment: datetime | None) -> str:
    """Return `moment` in UTC with the suffix `Z`, or the zero time for `None`.

    Microseconds are included unless they are zero.
    """
    if moment is None:
        return ZERO_TIME
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def from_rfc3339(text: str) -> datetime:
    """Return the time in `text`. Raises `ValueError` if it is not a date, a time and an offset from UTC."""
    if _RFC3339.fullmatch(text.upper()) is None:
        raise ValueError("not a time in RFC 3339")
    return datetime.fromisoformat(text.upper())


def now_ms() -> int:
    """Return the Unix time in milliseconds, the unit of `timestamp` in events."""
    return time.time_ns() // 1_000_000
