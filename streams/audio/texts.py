"""Identify texts that are sent instead of audio: error pages, JSON, and audio that was encoded in other ways."""

import codecs
import re

from streams.audio.signatures import BASE64, DATA_URL, HTML, JSON, TEXT, XML

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
_OBJECT_BYTES = 32
"""How many bytes must be text after an opening brace and a quotation mark. Shorter audio is too short anyway."""
_TEXT_BYTES = 512
"""How many bytes must be text if nothing else shows that it is one.

As PCM, they would be 16 ms of samples that are all positive and loud.
"""
_ELEMENT = re.compile(r"<[A-Za-z_]")
_DATA_URL = re.compile(r"data:[\w.+-]*/?[\w.+-]*[;,]")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\r\n-]+={0,2}\s*")


def text_type(head: bytes) -> str | None:
    """Return the type of the text that begins with `head`, or `None` if it may be PCM."""
    encoding = _UTF_16.get(head[:2])
    if encoding:
        found = _markup(head[2:].decode(encoding, errors="replace").encode().lstrip(_BLANK))
        return found if len(head) >= _OBJECT_BYTES else None
    text = head.removeprefix(_BYTE_ORDER_MARK).lstrip(_BLANK)
    if found := _markup(text):
        return found
    known = _decoded(text[:_TEXT_BYTES])
    return _plain_type(known) if known and len(head) >= _OBJECT_BYTES else None


def _markup(text: bytes) -> str | None:
    begin = text[:16].lower()
    for magic, mime_type in _MARKUP:
        if begin.startswith(magic):
            return mime_type
    is_object = text.startswith(b"{") and text[1:].lstrip(_BLANK).startswith(b'"')
    is_long = len(text) >= _OBJECT_BYTES
    return JSON if is_object and is_long and _decoded(text[:_OBJECT_BYTES]) else None


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
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(raw)
    except UnicodeDecodeError:
        return ""
    return text if "".join(text.split()).isprintable() else ""
