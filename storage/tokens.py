"""Tokens of sessions and operators: a prefix, 32 random bytes in base62, and a CRC32 checksum in 6 characters.

With the checksum, invalid tokens are refused without a query, and secret scanners can recognize tokens.
"""

import hashlib
import secrets
import string
import zlib

PREFIX = "st_"
"""The prefix of session tokens."""
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_PAIRS = [high + low for high in _ALPHABET for low in _ALPHABET]
_RANDOM_BYTES = 32
_RANDOM_CHARS = 43  # 62**43 > 2**256
_CHECK_CHARS = 6  # 62**6 > 2**32
LENGTH = len(PREFIX) + _RANDOM_CHARS + _CHECK_CHARS
"""The length of session tokens."""


def new_token(prefix: str = PREFIX) -> str:
    return encode(secrets.token_bytes(_RANDOM_BYTES), prefix)


def encode(random: bytes, prefix: str = PREFIX) -> str:
    """Return the token for 32 random bytes."""
    text = prefix + _base62(int.from_bytes(random), _RANDOM_CHARS)
    return text + _checksum(text)


def is_token(text: str, prefix: str = PREFIX) -> bool:
    """Return whether `text` has the form of a token and a correct checksum."""
    if len(text) != len(prefix) + _RANDOM_CHARS + _CHECK_CHARS or not text.startswith(prefix) or not text.isascii():
        return False
    return text[-_CHECK_CHARS:] == _checksum(text[:-_CHECK_CHARS])


def digest(token: str) -> str:
    """Return the SHA-256 digest of a token, which is stored instead of the token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _checksum(text: str) -> str:
    """Return the CRC32 of `text` in base62. Two digits are computed at a time, because every request does this."""
    rest, low = divmod(zlib.crc32(text.encode()), len(_PAIRS))
    high, middle = divmod(rest, len(_PAIRS))
    return _PAIRS[high] + _PAIRS[middle] + _PAIRS[low]


def _base62(number: int, width: int) -> str:
    """Return a number in base62 with an odd number of digits. Two are computed at a time, as for checksums."""
    digits = []
    for _ in range(width // 2):
        number, rest = divmod(number, len(_PAIRS))
        digits.append(_PAIRS[rest])
    return _ALPHABET[number] + "".join(reversed(digits))
