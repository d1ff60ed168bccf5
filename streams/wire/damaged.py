"""Reads JSON with damaged texts, such as the names in the profiles of sign-in platforms, and the output of models.

Vendors copy such texts into their responses: with control characters that are not escaped, cut in the middle of a
character, or with quotation marks that end the JSON string. `json_object` accepts the first two, because they leave
the structure intact. `leading_members` reads an object whose structure is broken, up to the fault.
"""

import json  # noqa: TID251 - orjson accepts neither control characters in strings nor half of a surrogate pair
import re
from contextlib import suppress
from typing import Any

from streams.wire.codec import loads
from streams.wire.errors import InvalidParameter
from streams.wire.nesting import check_nesting

_BOM = b"\xef\xbb\xbf"
_OPENING, _COLON, _COMMA, _CLOSING = (re.compile(rf"\s*{mark}\s*") for mark in (r"\{", ":", ",", r"\}"))
_EXACT = range(-(2**63), 2**64)


class BrokenObject(dict[str, Any]):
    """The members of an object that were read before a fault. Others may be missing."""


def json_object(raw: bytes) -> dict[str, Any] | None:
    """Return a JSON object, or None if `raw` is none. Its texts may contain control characters and surrogates.

    A byte that is not UTF-8 becomes a surrogate, so that no damaged text is taken for another, valid one.
    """
    try:
        value = loads(raw)
    except ValueError:
        value = None
        with suppress(ValueError, InvalidParameter):
            check_nesting(raw)
            value = _DECODER.decode(_text(raw))
    return value if isinstance(value, dict) else None


def loads_damaged(raw: bytes) -> Any:
    """Decode JSON whose texts may contain control characters and surrogates. A byte that is not UTF-8 is U+FFFD.

    Raises `ValueError` if the JSON itself is invalid, or nested too deeply for Python.
    """
    try:
        return _DECODER.decode(raw.decode(errors="replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def leading_members(raw: bytes) -> BrokenObject | None:
    """Return the members of an object before the first fault in it, or None if `raw` does not begin as an object.

    A member whose name occurs twice is left out: the text of a profile may contain what looks like a member.
    """
    text = _text(raw)
    opening = _OPENING.match(text)
    if opening is None:
        return None
    members, at = BrokenObject(), opening.end()
    with suppress(ValueError, InvalidParameter):
        check_nesting(raw)
        while at:
            at = _read_member(text, at, members)
    twice = [name for name in members if text.count(f'"{name}"') > 1]
    return BrokenObject({name: value for name, value in members.items() if name not in twice})


def _read_member(text: str, at: int, members: BrokenObject) -> int:
    """Add the member at a position, and return the position of the next one, or 0 if it is the last.

    Raise `ValueError` at a fault.
    """
    name, at = _DECODER.raw_decode(text, at)
    colon = _COLON.match(text, at)
    if not isinstance(name, str) or colon is None:
        raise ValueError("not a member")
    value, at = _DECODER.raw_decode(text, colon.end())
    comma = _COMMA.match(text, at)
    # A value that is followed by anything else may have been cut by the fault.
    if comma is None and _CLOSING.match(text, at) is None:
        raise ValueError("not the end of a member")
    members[name] = value
    return 0 if comma is None else comma.end()


def _text(raw: bytes) -> str:
    return raw.removeprefix(_BOM).decode(errors="surrogateescape")


def _integer(digits: str) -> int | float:
    """Return a number as orjson does: one of more than 64 bits is a float."""
    number = int(digits)
    return number if number in _EXACT else float(digits)


_DECODER = json.JSONDecoder(strict=False, parse_int=_integer)
