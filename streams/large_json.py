"""Large JSON whose size is that of a few long texts, such as base64, decoded over many loop iterations."""

import secrets
from typing import Any

from streams.loop_time import wait_for_loop_time
from streams.wire.codec import loads_request
from streams.wire.errors import InvalidParameter
from streams.wire.long_integers import filled

_WINDOW_BYTES = 64 * 1024
_ESCAPE_BYTES = 12
"""The longest escape: a pair of surrogates."""
_CUT_WITHIN_BYTES = 4096

Span = tuple[int, int]


async def loads_large_request(raw: bytes, *, rest_bytes: int, exact: bool = False) -> Any:
    """Decode JSON like `loads_request`, but not all of it at once.

    Also raises `InvalidParameter` if there are more than `rest_bytes` besides the long texts. A long text is a
    string of more than 128 KiB that contains no quotes.
    """
    await wait_for_loop_time()
    spans = long_texts(raw, rest_bytes=rest_bytes)
    if spans is None:
        raise InvalidParameter(f"body has more than {rest_bytes} bytes besides long texts")
    texts: dict[str, str] = {}
    name, rest, end = secrets.token_hex(16), [], 0
    for number, span in enumerate(spans):
        key = f"{name}-{number}"
        texts[key] = await _text(raw, span)
        rest += [raw[end : span[0]], key.encode()]
        end = span[1]
    await wait_for_loop_time()
    value = filled(loads_request(b"".join([*rest, raw[end:]]), exact=exact), texts)
    if texts:
        raise InvalidParameter("body has a name that is too long")
    return value


def long_texts(raw: bytes, *, rest_bytes: int) -> list[Span] | None:
    """Return the positions of the long texts in `raw`, without their quotes; `None` if too much is besides them.

    This takes about a millisecond for a few MiB, because it only looks for one quote in each window.
    """
    spans: list[Span] = []
    end = at = quotes = 0
    while at < len(raw) and _rest(spans, at) <= rest_bytes + 2 * _WINDOW_BYTES:
        if raw.find(b'"', at, at + _WINDOW_BYTES) >= 0 or len(raw) - at < _WINDOW_BYTES:
            at += _WINDOW_BYTES
            continue
        span = _around(raw, at, end)
        if span is None or (quotes := quotes + _quotes(raw[end : span[0]])) % 2 == 0:
            return None
        spans.append(span)
        quotes += 1
        end = at = span[1] + 1
    return spans if _rest(spans, len(raw)) <= rest_bytes else None


def _around(raw: bytes, at: int, end: int) -> Span | None:
    """Return the text around `at`: between two quotes after `end` that are not escaped."""
    first, second = raw.rfind(b'"', end, at), raw.find(b'"', at)
    if first < 0 or second < 0 or raw[first - 1 : first] == b"\\":
        return None
    tail = raw[max(first + 1, second - _CUT_WITHIN_BYTES) : second]
    return None if (len(tail) - len(tail.rstrip(b"\\"))) % 2 else (first + 1, second)


def _quotes(part: bytes) -> int:
    return part.replace(rb"\\", b"").replace(rb"\"", b"").count(b'"')


def _rest(spans: list[Span], end: int) -> int:
    return end - sum(last - first for first, last in spans)


async def _text(raw: bytes, span: Span) -> str:
    at, end = span
    parts: list[str] = []
    while at < end:
        await wait_for_loop_time()
        cut = _cut(raw, at + _WINDOW_BYTES) if at + _WINDOW_BYTES < end else end
        try:
            parts.append(loads_request(b'"%b"' % raw[at:cut]))
        except InvalidParameter:
            raise InvalidParameter(f"body is not valid JSON: a text is invalid after byte {at}") from None
        at = cut
    await wait_for_loop_time()
    return "".join(parts)


def _cut(raw: bytes, at: int) -> int:
    """Return a position at `at` or before where neither a character nor an escape is divided."""
    for cut in range(at, at - _CUT_WITHIN_BYTES, -1):
        if raw[cut] & 0xC0 != 0x80 and raw.find(b"\\", cut - _ESCAPE_BYTES, cut) < 0:
            return cut
    raise InvalidParameter("body has a long text of escapes")
