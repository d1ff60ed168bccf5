"""Identify texts that are sent instead of audio: error pages, JSON, and audio that was encoded in other ways."""

import codecs
import re

from streams.audio.signatures import BASE64, DATA_URL, HTML, JSON, MULTIPART, TEXT, XML

_MARKUP = (
    (b"<!doctype", HTML),
    (b"<html", HTML),
    (b"<head>", HTML),
    (b"<body", HTML),
    (b"<!--", HTML),
    (b"<?xml", XML),
)
"""No PCM begins with these."""
_BLANK = b" \t\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_UNMARKED_UTF_16 = ((re.compile(rb"[{<]\0[^\0]\0"), "utf-16-le"), (re.compile(rb"\0[{<]\0[^\0]"), "utf-16-be"))
"""Markup and JSON without a byte order mark. Other texts would look like quiet PCM."""
_MULTIPART = re.compile(rb"(?:\r\n)?--[\w'()+,./:=? -]{1,70}\r?\n(?i:content-)")
"""The beginning of the first part (RFC 2046, 5.1.1)."""
_OBJECT_BYTES = 32
"""How many bytes must be text after an opening brace and a quotation mark. Shorter audio is too short anyway."""
_TEXT_BYTES = 512
"""How many bytes must be text if nothing else shows that it is one.

As PCM, they would be 16 ms of samples that are all positive and loud.
"""
_MIN_DISTINCT = 6
"""How many bytes a text has in its odd places, and in its even ones. Square waves have one or two values there."""
_BASE64_SILENCE = b"A"
_ELEMENT = re.compile(r"<[A-Za-z_]")
_DATA_URL = re.compile(r"data:[\w.+-]*/?[\w.+-]*[;,]")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\r\n-]+={0,2}\s*")


def text_type(head: bytes) -> str | None:
    """Return the type of the text that begins with `head`, or `None` if it may be PCM."""
    if _MULTIPART.match(head):
        return MULTIPART
    if encoding := _UTF_16.get(head[:2]):
        return _known_type(_from_utf_16(head[2:], encoding))
    for begin, encoding in _UNMARKED_UTF_16:
        if begin.match(head):
            return _markup(_from_utf_16(head, encoding))
    return _known_type(head.removeprefix(_BYTE_ORDER_MARK))


def _from_utf_16(raw: bytes, encoding: str) -> bytes:
    """Return the beginning in UTF-8, or nothing if it is no text."""
    return _decoded_as(encoding, raw[: 2 * _TEXT_BYTES]).encode()


def _known_type(text: bytes) -> str | None:
    text = text.lstrip(_BLANK)
    if found := _markup(text):
        return found
    begin = text[:_TEXT_BYTES].rstrip()
    known = _decoded(begin)
    return _plain_type(known) if known and len(text) >= _OBJECT_BYTES and _is_varied(begin) else None


def _markup(text: bytes) -> str | None:
    begin = text[:16].lower()
    for magic, mime_type in _MARKUP:
        if begin.startswith(magic):
            return mime_type
    is_object = text.startswith(b"{") and text[1:].lstrip(_BLANK).startswith(b'"')
    is_long = len(text) >= _OBJECT_BYTES
    is_text = is_object and is_long and _decoded(text[:_OBJECT_BYTES]) and _is_varied(text[:_TEXT_BYTES])
    return JSON if is_text else None


def _plain_type(text: str) -> str | None:
    if text.startswith(("{", "[")):
        return JSON
    if _ELEMENT.match(text):
        return XML
    if _DATA_URL.match(text):
        return DATA_URL
    return BASE64 if _BASE64.fullmatch(text) else TEXT


def _decoded(raw: bytes) -> str:
    """Return the characters in `raw`, or an empty string if it is no text."""
    return _decoded_as("utf-8", raw)


def _decoded_as(encoding: str, raw: bytes) -> str:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(raw)
    except UnicodeDecodeError:
        return ""
    return text if "".join(text.split()).isprintable() else ""


def _is_varied(text: bytes) -> bool:
    return not text.strip(_BASE64_SILENCE) or min(len(set(text[::2])), len(set(text[1::2]))) >= _MIN_DISTINCT
