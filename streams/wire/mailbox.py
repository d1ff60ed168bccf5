"""Reads and writes what a header of an email contains: one line of text, or one address with its name.

The email package of Python 3.11 decodes encoded words in text that only looks like them, and breaks some long names
into several addresses. So this module reads addresses by itself, and writes headers of which each parser reads the
same.
"""

import re
from email.charset import Charset
from email.errors import HeaderParseError
from email.header import Header, decode_header, make_header
from typing import NamedTuple

from streams.wire.lines import is_line

_LINE = 76
"""Characters of a line, and of an encoded word with what precedes it (RFC 2047, section 2)."""
_ENCODED = "=?"
"""Begins an encoded word. Text with it is always encoded, because readers would decode it."""
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_NAMED = re.compile(rf'(?P<name>(?:{_QUOTED}|[^"\\<>@,:;])*)<(?P<address>[^<>\s]+)>')
_BARE = re.compile(r"(?P<address>[^<>()\s]+)(?:\s*\((?P<name>[^()]*)\))?")
_LOCAL_PART = re.compile(r'[^\x00-\x20"(),.:;<>@\[\\\]\x7f]+(?:\.[^\x00-\x20"(),.:;<>@\[\\\]\x7f]+)*')
_DOMAIN = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*|\[[A-Za-z0-9:.]+\]")
_PART = re.compile(rf'{_QUOTED}|[^"]+')
_SPLIT = re.compile(r"(?<=[^ ]) (?=[^ ])")


class Mailbox(NamedTuple):
    """An address, and the name before it, which may be empty."""

    name: str
    address: str


def mailbox_of(text: str) -> Mailbox:
    """Read an address, with or without a name: `Ada <ada@example.com>`, `"Doe, Jane" <jane@example.com>`.

    The name may contain `,`, `:`, `;` and `@` in quotation marks only. Otherwise they mean several addresses or a
    group. Raises `ValueError`.
    """
    found = _NAMED.fullmatch(text.strip()) or _BARE.fullmatch(text.strip())
    if found is None:
        raise ValueError("not one address")
    parts = (_unquoted(part) for part in _PART.findall(found["name"] or ""))
    name = _decoded("".join(parts).strip())
    if not is_line(text) or not is_line(name):
        raise ValueError("not one line")
    local, _, domain = found["address"].rpartition("@")
    ascii_domain = domain if domain.isascii() else domain.encode("idna").decode()
    if not _LOCAL_PART.fullmatch(local) or _ENCODED in local or not _DOMAIN.fullmatch(ascii_domain):
        raise ValueError("not an address")
    return Mailbox(name, f"{local}@{ascii_domain}")


def _unquoted(part: str) -> str:
    return re.sub(r"\\(.)", r"\1", part[1:-1]) if part.startswith('"') else part


def _decoded(name: str) -> str:
    """Decode the encoded words of a name, which is what a header would contain."""
    try:
        return str(make_header(decode_header(name)))
    except (HeaderParseError, LookupError, UnicodeError):
        return name


def written_text(text: str, *, header: str) -> str:
    """Return text as the value of a header, folded into short lines. Raises `ValueError` if it is not one line."""
    if not is_line(text):
        raise ValueError(f"{header} must be one line")
    if text.isascii() and _ENCODED not in text and text == text.strip(" "):
        lines = _folded(text, first=_LINE - len(header) - 2)
        if all(len(line) <= _LINE for line in lines):
            return "\r\n ".join(lines)
    return _encoded(text, header=header)


def written_mailbox(mailbox: Mailbox, *, header: str) -> str:
    """Return an address and its name as the value of a header. Raises `ValueError` if the name is not one line."""
    name, address = mailbox
    if not is_line(name):
        raise ValueError(f"{header} must be one line")
    if not name:
        return address
    phrase, room = name, _LINE - len(header) - 2
    if not _ATOMS.fullmatch(name):
        phrase = '"{}"'.format(re.sub(r'(["\\])', r"\\\1", name))
    if not name.isascii() or _ENCODED in name or len(phrase) > room:
        phrase = _encoded(name, header=header)
    fits = "\r\n" not in phrase and len(phrase) + len(address) + 3 <= room
    return f"{phrase} <{address}>" if fits else f"{phrase}\r\n <{address}>"


def _folded(text: str, *, first: int) -> list[str]:
    """Break text into lines at single spaces. `first` is the room in the first line."""
    lines, room = [""], first
    for word in _SPLIT.split(text):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append(word)
            room = _LINE
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def _encoded(text: str, *, header: str) -> str:
    """Return encoded words, which readers join. Each has whole characters."""
    return Header(text, Charset("utf-8"), maxlinelen=_LINE, header_name=header).encode(linesep="\r\n")
