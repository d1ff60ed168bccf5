"""Verification of `X-Service-Auth-Token`, a JWT that an app server creates (§5).

The algorithm is that of the registered key. The one that the token names is not trusted.
"""

import time
from functools import lru_cache

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from pydantic import Field

from storage.kinds.auth import Auth, ServerKey
from streams.wire.errors import AuthFailed, ConfigInvalid, InvalidParameter
from streams.wire.model import Model

HEADER = "X-Service-Auth-Token"
LEEWAY_S = 60
_PublicKey = Ed25519PublicKey | EllipticCurvePublicKey | RSAPublicKey
_FOREIGN_KEY_HEADERS = ("crit", "jku", "jwk", "x5c", "x5u")
_SECRET_BYTES = 32
_RSA_BITS = 2048


class Claims(Model):
    exp: float
    iat: float
    sub: str | None = Field(default=None, min_length=1, max_length=64)
    """The only user that the token may be used for; absent: any user."""
    scope: str | None = None
    """The scopes of endpoints, separated by spaces; absent: all."""
    jti: str | None = Field(default=None, min_length=1, max_length=128)
    """If present, the token is valid for one call."""

    def covers(self, scope: str) -> bool:
        return self.scope is None or scope in self.scope.split()

    @property
    def usable_s(self) -> float:
        """Seconds for which this token remains valid, including the leeway."""
        return self.exp + LEEWAY_S - time.time()


def verify(token: str, config: Auth, *, app_id: str) -> tuple[ServerKey, Claims]:
    """Return the key and the claims of a token. Raises `AuthFailed` when it is not valid."""
    if not token.isascii():
        raise refused()
    try:
        header = jwt.get_unverified_header(token)
        key = _registered(header.get("kid"), config)
        if key is None or any(name in header for name in _FOREIGN_KEY_HEADERS):
            raise refused()
        payload = jwt.decode(
            token,
            _key_material(key),
            algorithms=[key.alg],
            audience=config.server_audience,
            issuer=app_id,
            leeway=LEEWAY_S,
            options={"enforce_minimum_key_length": True},
        )
        claims = Claims.of(payload)
    except jwt.ExpiredSignatureError:  # Its signature is right, so the caller may know.
        raise expired() from None
    except (jwt.PyJWTError, InvalidParameter):
        raise refused() from None
    if claims.usable_s > config.server_token_max_s + 2 * LEEWAY_S:
        raise AuthFailed(f"{HEADER} is valid for more than {config.server_token_max_s} s")
    return key, claims


def refused() -> AuthFailed:
    return AuthFailed(f"{HEADER} is missing or wrong")


def expired() -> AuthFailed:
    return AuthFailed(f"{HEADER} has expired")


def _registered(kid: object, config: Auth) -> ServerKey | None:
    return next((key for key in config.server_keys if key.kid == kid), None)


def _key_material(key: ServerKey) -> _PublicKey | bytes:
    if key.alg == "HS256":
        secret = key.secret.get_secret_value().encode() if key.secret else b""
        if len(secret) < _SECRET_BYTES:
            raise ConfigInvalid(f"auth default: secret of server key {key.kid} needs 32 bytes")
        return secret
    try:
        return public_key(key.alg, key.public_key or "")
    except ValueError as error:
        raise ConfigInvalid(f"auth default: public_key of server key {key.kid} {error}") from None


@lru_cache(maxsize=256)
def public_key(alg: str, pem: str) -> _PublicKey:
    """Return the key in `pem`. Raises `ValueError` when it is not a key for `alg`."""
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError("is not the PEM of a public key") from None
    if alg == "EdDSA" and isinstance(key, Ed25519PublicKey):
        return key
    if alg == "ES256" and isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return key
    if alg == "RS256" and isinstance(key, RSAPublicKey) and key.key_size >= _RSA_BITS:
        return key
    raise ValueError(f"is not a key for {alg}")
