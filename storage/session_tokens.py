"""The text of a session token: `st_`, 32 random bytes in base62, and 6 characters of CRC32 over both.

The checksum lets a typo or garbage be refused without a query, and lets secret scanners know a token.
"""

import hashlib
import secrets
import string
import zlib

PREFIX = "st_"
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_RANDOM_BYTES = 32
_RANDOM_CHARS = 43  # 62**43 > 2**256
_CHECK_CHARS = 6  # 62**6 > 2**32
LENGTH = len(PREFIX) + _RANDOM_CHARS + _CHECK_CHARS


def new_token() -> str:
    return encode(secrets.token_bytes(_RANDOM_BYTES))


def encode(random: bytes) -> str:
    """The token of 32 bytes."""
    text = PREFIX + _base62(int.from_bytes(random), _RANDOM_CHARS)
    return text + _checksum(text)


def is_token(text: str) -> bool:
    """Whether `text` has the form of a token and its checksum is right."""
    if len(text) != LENGTH or not text.startswith(PREFIX) or not text.isascii():
        return False
    return text[-_CHECK_CHARS:] == _checksum(text[:-_CHECK_CHARS])


def digest(token: str) -> str:
    """What is stored in a token's place."""
    return hashlib.sha256(token.encode()).hexdigest()


def _checksum(text: str) -> str:
    """Six digits, two at a time: every request of a user pays for it."""
    rest, low = divmod(zlib.crc32(text.encode()), len(_PAIRS))
    high, middle = divmod(rest, len(_PAIRS))
    return _PAIRS[high] + _PAIRS[middle] + _PAIRS[low]


def _base62(number: int, width: int) -> str:
    letters = []
    for _ in range(width):
        number, rest = divmod(number, 62)
        letters.append(_ALPHABET[rest])
    return "".join(reversed(letters))
