"""The master key at work: boxes for what must not be read from the database, and keys for other purposes."""

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
    """A box that no key here opens: another master key, another place, or it was altered."""


class Keyring:
    """The deployment's keys. The first seals and derives; all of them open.

    A box is URL-safe base64 of version (1 byte), key id (4), nonce (12), AES-256-GCM ciphertext and tag.
    To replace a master key, put the new one first and keep the old one until nothing is sealed with it.
    """

    def __init__(self, masters: Sequence[bytes]) -> None:
        if not masters or any(len(master) != _KEY_BYTES for master in masters):
            raise ValueError(f"a master key is {_KEY_BYTES} bytes")
        self._master = masters[0]
        self._ciphers = {_key_id(master): AESGCM(_derived(master, "box")) for master in masters}

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Keys of 32 bytes in hexadecimal, separated by commas, the one that seals first."""
        return cls([bytes.fromhex(part) for part in text.split(",")])

    def seal(self, plain: str, *, aad: str) -> str:
        """A box of `plain` that opens only together with the same `aad`, its place."""
        head = _VERSION + _key_id(self._master)
        nonce = os.urandom(_NONCE_BYTES)
        cipher = self._ciphers[head[len(_VERSION) :]]
        sealed = cipher.encrypt(nonce, plain.encode(), head + aad.encode())
        return urlsafe_b64encode(head + nonce + sealed).decode()

    def open(self, box: str, *, aad: str) -> str:
        """What was sealed in `box`, or `BoxRefused`."""
        try:
            raw = urlsafe_b64decode(box.encode())
        except ValueError:
            raise BoxRefused("this is no box") from None
        head, nonce = raw[:_HEAD_BYTES], raw[_HEAD_BYTES : _HEAD_BYTES + _NONCE_BYTES]
        cipher = self._ciphers.get(head[len(_VERSION) :])
        if not head.startswith(_VERSION) or cipher is None or len(nonce) < _NONCE_BYTES:
            raise BoxRefused("no key here belongs to this box")
        try:
            return cipher.decrypt(nonce, raw[_HEAD_BYTES + _NONCE_BYTES :], head + aad.encode()).decode()
        except InvalidTag:
            raise BoxRefused("this box was altered or belongs elsewhere") from None

    def derive(self, purpose: str) -> bytes:
        """32 bytes of the first key for one purpose: file links, the pepper of codes.

        What was signed or peppered with them ends when another key comes first.
        """
        return _derived(self._master, f"for {purpose}")


def _derived(master: bytes, info: str) -> bytes:
    return HKDF(SHA256(), length=_KEY_BYTES, salt=None, info=f"parley {info}".encode()).derive(master)


def _key_id(master: bytes) -> bytes:
    return _derived(master, "key id")[:_ID_BYTES]
