"""Profiles that strict JSON parsers refuse because of the person's name, as platforms have sent them."""

from collections.abc import Callable, Mapping
from typing import Literal

from streams.wire.codec import dumps

Garbling = Literal["", "control_characters", "cut_character", "half_emoji", "quote", "cut"]
_PADDING = b"x" * 70_000

_DAMAGE: Mapping[Garbling, Callable[[bytes], bytes]] = {
    "control_characters": lambda name: b"%b\x01\n\t%b" % (name[:1], name[1:]),
    "cut_character": lambda name: name + "用".encode()[:2],
    "half_emoji": lambda name: name + rb"\ud83d",
    "quote": lambda name: b'%b"%b' % (name[:1], name[1:]),
}


def garbled(raw: bytes, garbling: Garbling, *, name: str) -> bytes:
    """Return the JSON of an answer with a damaged name of the person.

    `control_characters`: it contains them unescaped. `cut_character`: it ends in the middle of a UTF-8 sequence.
    `half_emoji`: it ends with half of a surrogate pair. `quote`: it contains an unescaped quotation mark. `cut`:
    the answer is much too long and ends inside of the name.
    """
    shown = dumps(name)[1:-1]
    before, found, after = raw.partition(b'"%b"' % shown)
    if not found or not garbling:
        return raw
    if garbling == "cut":
        return b'%b"%b%b' % (before, shown, _PADDING)
    return b'%b"%b"%b' % (before, _DAMAGE[garbling](shown), after)
