"""The keys with which providers sign id tokens (JSON Web Key Sets)."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from pydantic import ValidationError

from streams.kept_errors import copy_of
from streams.wire.codec import loads
from streams.wire.model import Model
from vendors.errors import Garbled
from vendors.http.fetched import Fetched, download
from vendors.http.kept import Kept
from vendors.http.transport import VendorHttp

_MAX_BYTES = 64 * 1024
_MAX_KEYS = 100
_MAX_URLS = 64
_USUAL_AGE_S = 3600
"""How long keys are used if the response does not specify it."""
_MIN_AGE_S, _MAX_AGE_S = 5 * 60, 24 * 3600
_STALE_S = 24 * 3600
"""How long expired keys are still used while they cannot be fetched."""
_REFETCH_S = 30
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,10})", re.IGNORECASE | re.ASCII)
_RSA_BITS = range(2048, 8192 + 1)
_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
_CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}
ALGORITHMS = _RSA.union(_CURVES.values())
"""The accepted algorithms. All are asymmetric."""


class _Jwk(Model):
    """The fields of a public key. A key has exactly one algorithm, regardless of the tokens."""

    kty: str
    kid: str = ""
    use: str = "sig"
    alg: str = ""
    crv: str = ""
    n: str = ""
    e: str = ""
    x: str = ""
    y: str = ""

    def algorithm(self) -> str:
        """Return the algorithm of the key, or an empty string if it is not accepted."""
        if self.use != "sig":
            return ""
        if self.kty == "RSA":
            return self.alg or "RS256" if self.alg in _RSA | {""} else ""
        algorithm = _CURVES.get(self.crv, "")
        matches = self.kty == ("OKP" if algorithm == "EdDSA" else "EC") and self.alg in {"", algorithm}
        return algorithm if matches else ""


@dataclass(frozen=True, slots=True)
class _KeySet:
    keys: Sequence[jwt.PyJWK]
    age_s: int

    def find(self, kid: str) -> jwt.PyJWK | None:
        """Return the key `kid`, or the only key if `kid` is empty."""
        if not kid:
            return self.keys[0] if len(self.keys) == 1 else None
        return next((key for key in self.keys if key.key_id == kid), None)


class _Entry(Fetched[_KeySet]):
    """The keys at one URL, with the times of the monotonic clock that decide when they are fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.expires_at = self.stale_at = self.refetch_at = 0.0

    def find(self, kid: str, *, now: float) -> jwt.PyJWK | None:
        return self.value.find(kid) if self.value is not None and now < self.stale_at else None


class JwksCache:
    """The keys of all providers, which are kept in the `VendorHttp`. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._entries: Kept[_Entry] = Kept(_Entry, most=_MAX_URLS)

    async def find(self, http: VendorHttp, vendor: str, url: str, *, kid: str) -> jwt.PyJWK | None:
        """Return the key `kid`, or the only key if `kid` is empty. None if the provider has no such key.

        Keys are fetched when they expire. If `kid` is unknown, they are fetched at most once every 30 s, so that
        forged tokens do not cause more calls. Raise `VendorError` if the key is unknown and the last fetch failed.
        """
        entry = self._entries.of(http, url)
        now = self._clock()
        known = entry.find(kid, now=now)
        if now >= entry.expires_at:
            await self._fetch(entry, http, vendor, url)
        elif known is None and (now >= entry.refetch_at or entry.under_way):
            entry.refetch_at = now + _REFETCH_S
            await self._fetch(entry, http, vendor, url)
        known = entry.find(kid, now=now)
        if known is None and entry.error is not None:
            raise copy_of(entry.error)
        return known

    async def _fetch(self, entry: _Entry, http: VendorHttp, vendor: str, url: str) -> None:
        async def fetch() -> _KeySet:
            raw, headers = await download(http, vendor, url, limit_bytes=_MAX_BYTES)
            return _KeySet(_keys(vendor, raw), _age_s(headers))

        await entry.fetch(fetch)
        now = self._clock()
        if entry.error is None and entry.value is not None:
            entry.expires_at = now + entry.value.age_s
            entry.stale_at = entry.expires_at + _STALE_S
        elif now < entry.stale_at:
            entry.expires_at = max(entry.expires_at, now + _REFETCH_S)


JWKS = JwksCache()
"""The keys that all providers of the process share."""


def _age_s(headers: Mapping[str, str]) -> int:
    found = _MAX_AGE.search(headers.get("Cache-Control", ""))
    return min(max(int(found[1]) if found else _USUAL_AGE_S, _MIN_AGE_S), _MAX_AGE_S)


def _keys(vendor: str, raw: bytes) -> list[jwt.PyJWK]:
    try:
        value = loads(raw)
    except ValueError:
        raise Garbled(vendor, "sent keys that are not JSON") from None
    listed = value.get("keys") if isinstance(value, dict) else None
    keys = [key for jwk in (listed if isinstance(listed, list) else [])[:_MAX_KEYS] if (key := _key(jwk))]
    if not keys:
        raise Garbled(vendor, "sent no usable keys")
    return keys


def _key(value: Any) -> jwt.PyJWK | None:
    """Return a key, or None if it is malformed or not accepted."""
    try:
        jwk = _Jwk.model_validate(value)
        if not (algorithm := jwk.algorithm()):
            return None
        key = jwt.PyJWK(jwk.model_dump(exclude_defaults=True), algorithm)
    except (ValidationError, jwt.PyJWTError, ValueError):
        return None
    if isinstance(key.key, RSAPublicKey) and key.key.key_size not in _RSA_BITS:
        return None
    return key
