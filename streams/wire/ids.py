"""Ids that sort by time, and random tokens."""

import hashlib
import os
import re
import time
from contextvars import ContextVar

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""Of the request that is being answered, as vendors are told it."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ID = re.compile(r"[0-9a-f]{32}")
_VERSION = 0x7 << 76 | 0x2 << 62
_RANDOM = (1 << 80) - 1 & ~(0xF << 76 | 0x3 << 62)


def new_id() -> str:
    """A UUIDv7 as 32 hexadecimal digits: sorts by the millisecond of its making (RFC 9562 §5.7)."""
    random = int.from_bytes(os.urandom(10)) & _RANDOM
    return f"{time.time_ns() // 1_000_000 << 80 | _VERSION | random:032x}"


def is_id(text: str) -> bool:
    """Whether `text` has the form of an id of ours: others cannot exist and need no query."""
    return _ID.fullmatch(text) is not None


def request_id(given: str | None) -> str:
    """The caller's `X-Request-Id` where it is 1 to 64 of `[A-Za-z0-9._-]`, else a new one."""
    return given if given and _REQUEST_ID.fullmatch(given) else new_id()


def sha256_hex(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
