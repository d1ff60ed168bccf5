"""Encryption with the master key, and keys derived from it for other purposes."""

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from streams.wire.codec import dumps, loads

_VERSION = b"\x01"
_ID_BYTES = 4
_NONCE_BYTES = 12
_HEAD_BYTES = len(_VERSION) + _ID_BYTES
_KEY_BYTES = 32
_ENCRYPTION_INFO = "box"
"""Part of the key derivation. Stored ciphertexts depend on it, so it must not change."""


class DecryptionFailed(ValueError):
    """A ciphertext was encrypted with another master key or other `aad`, or it was altered."""


class Keyring:
    """The master keys of a deployment. The first one encrypts and derives keys; all of them decrypt.

    `encrypt` returns the URL-safe base64 of version (1 byte), key id (4), nonce (12), AES-256-GCM ciphertext, tag.
    To replace a master key, put the new one first and keep the old one until no text is encrypted with it.
    """

    def __init__(self, masters: Sequence[bytes]) -> None:
        if not masters or any(len(master) != _KEY_BYTES for master in masters):
            raise ValueError(f"a master key must have {_KEY_BYTES} bytes")
        self._master = masters[0]
        self._masters = tuple(masters)
        self._ciphers = {_key_id(master): AESGCM(_derived(master, _ENCRYPTION_INFO)) for master in masters}

    @classmethod
    def from_hex(cls, text: str) -> Self:
        """Parse a comma-separated list of keys, each 32 bytes in hexadecimal."""
        return cls([bytes.fromhex(part) for part in text.split(",")])

    def encrypt(self, plain: str, *, aad: str) -> str:
        """Encrypt `plain`. Decryption needs the same `aad`, which names where the ciphertext is stored."""
        head = _VERSION + _key_id(self._master)
        nonce = os.urandom(_NONCE_BYTES)
        cipher = self._ciphers[head[len(_VERSION) :]]
        ciphertext = cipher.encrypt(nonce, plain.encode(), head + aad.encode())
        return urlsafe_b64encode(head + nonce + ciphertext).decode()

    def decrypt(self, encrypted: str, *, aad: str) -> str:
        """Decrypt a result of `encrypt`. Raises `DecryptionFailed` if no key decrypts it."""
        raw = _decoded(encrypted)
        head, nonce = raw[:_HEAD_BYTES], raw[_HEAD_BYTES : _HEAD_BYTES + _NONCE_BYTES]
        cipher = self._ciphers.get(head[len(_VERSION) :])
        if not head.startswith(_VERSION) or cipher is None or len(nonce) < _NONCE_BYTES:
            raise DecryptionFailed("the text is encrypted with an unknown key")
        try:
            return cipher.decrypt(nonce, raw[_HEAD_BYTES + _NONCE_BYTES :], head + aad.encode()).decode()
        except InvalidTag:
            raise DecryptionFailed("the ciphertext was altered or belongs to another field") from None

    def has_key_of(self, encrypted: str) -> bool:
        """Return whether one of the keys has encrypted `encrypted`, a result of `encrypt`."""
        return _decoded(encrypted)[len(_VERSION) : _HEAD_BYTES] in self._ciphers

    def is_by_first(self, encrypted: str) -> bool:
        """Return whether the first key has encrypted `encrypted`, a result of `encrypt`."""
        return _decoded(encrypted)[len(_VERSION) : _HEAD_BYTES] == _key_id(self._master)

    def encrypt_value(self, value: object, *, aad: str) -> str:
        """Encrypt a value of JSON."""
        return self.encrypt(dumps(value).decode(), aad=aad)

    def decrypt_value(self, encrypted: str, *, aad: str) -> Any:
        """Decrypt a result of `encrypt_value`. Raises `DecryptionFailed`."""
        return loads(self.decrypt(encrypted, aad=aad))

    def derive(self, purpose: str) -> bytes:
        """Derive 32 bytes from the first key for one purpose, such as signing file links.

        The result changes when another key becomes the first one.
        """
        return _derived(self._master, f"for {purpose}")

    def derive_all(self, purpose: str) -> list[bytes]:
        """Derive 32 bytes from each key for one purpose, so that signatures by earlier keys can be verified."""
        return [_derived(master, f"for {purpose}") for master in self._masters]


def _decoded(encrypted: str) -> bytes:
    try:
        return urlsafe_b64decode(encrypted.encode())
    except ValueError:
        raise DecryptionFailed("the ciphertext is not valid base64") from None


def _derived(master: bytes, info: str) -> bytes:
    return HKDF(SHA256(), length=_KEY_BYTES, salt=None, info=f"parley {info}".encode()).derive(master)


def _key_id(master: bytes) -> bytes:
    return _derived(master, "key id")[:_ID_BYTES]
