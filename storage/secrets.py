"""Encryption with the master key, and keys derived from it for other purposes.

An encrypted text is called a box.
"""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_VERSION = b"\x01"
_ID_BYTES = 4
_NONCE_BYTES = 12
_HEAD_BYTES = len(_VERSION) + _ID_BYTES
_KEY_BYTES = 32


class BoxRefused(ValueError):
    """A box cannot be opened: it belongs to another master key or other `aad`, or it was altered."""


class Keyring:
    """The master keys of a deployment. The first one seals boxes and derives keys; all of them open boxes.

    A box is the URL-safe base64 of version (1 byte), key id (4), nonce (12), AES-256-GCM ciphertext and tag.
    To replace a master key, put the new one first and keep the old one until no box is sealed with it.
    """

    def __init__(self, masters: Sequence[bytes]) -> None:
        if not masters or any(len(master) != _KEY_BYTES for master in masters):
            raise ValueError(f"a master key is {_KEY_BYTES} bytes")
        self._master = masters[0]
        self._ciphers = {_key_id(master): AESGCM(_derived(master, "box")) for master in masters}

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Parse a comma-separated list of keys, each 32 bytes in hexadecimal."""
        return cls([bytes.fromhex(part) for part in text.split(",")])

    def seal(self, plain: str, *, aad: str) -> str:
        """Encrypt `plain`. The box can only be opened with the same `aad`, which names where it is stored."""
        head = _VERSION + _key_id(self._master)
        nonce = os.urandom(_NONCE_BYTES)
        cipher = self._ciphers[head[len(_VERSION) :]]
        sealed = cipher.encrypt(nonce, plain.encode(), head + aad.encode())
        return urlsafe_b64encode(head + nonce + sealed).decode()

    def open(self, box: str, *, aad: str) -> str:
        """Decrypt `box`. Raises `BoxRefused` if no key opens it."""
        try:
            raw = urlsafe_b64decode(box.encode())
        except ValueError:
            raise BoxRefused("the box is not valid base64") from None
        head, nonce = raw[:_HEAD_BYTES], raw[_HEAD_BYTES : _HEAD_BYTES + _NONCE_BYTES]
        cipher = self._ciphers.get(head[len(_VERSION) :])
        if not head.startswith(_VERSION) or cipher is None or len(nonce) < _NONCE_BYTES:
            raise BoxRefused("the box is sealed with an unknown key")
        try:
            return cipher.decrypt(nonce, raw[_HEAD_BYTES + _NONCE_BYTES :], head + aad.encode()).decode()
        except InvalidTag:
            raise BoxRefused("the box was altered or sealed for another place") from None

    def derive(self, purpose: str) -> bytes:
        """Derive 32 bytes from the first key for one purpose, such as signing file links.

        The result changes when another key becomes the first one.
        """
        return _derived(self._master, f"for {purpose}")


def _derived(master: bytes, info: str) -> bytes:
    return HKDF(SHA256(), length=_KEY_BYTES, salt=None, info=f"parley {info}".encode()).derive(master)


def _key_id(master: bytes) -> bytes:
    return _derived(master, "key id")[:_ID_BYTES]
