"""Verification of `X-Service-Auth-Token`, a JWT that an app server creates (§5).

The algorithm is that of the registered key. The one that the token names is not trusted.
"""

import time

import jwt
from pydantic import Field

from storage.configs.kinds.auth import Auth, ServerKey
from storage.configs.kinds.server_keys import InvalidKey, PublicKey, key_material
from streams.wire.errors import AuthFailed, ConfigInvalid, InvalidParameter
from streams.wire.model import Model

HEADER = "X-Service-Auth-Token"
LEEWAY_S = 60
_FOREIGN_KEY_HEADERS = ("crit", "jku", "jwk", "x5c", "x5u")


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


def _key_material(key: ServerKey) -> PublicKey | bytes:
    try:
        return key_material(key)
    except InvalidKey as error:
        raise ConfigInvalid(f"auth default: {error.field} of server key {key.kid} {error.problem}") from None
