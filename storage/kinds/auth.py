"""Kind `auth`: how callers of an app prove themselves."""

from typing import Literal

from pydantic import Field, SecretStr

from storage.kinds.base import DAY_S, ConfigKind
from streams.wire.model import Model


class SignKey(Model):
    """A key of `X-Service-Sign`; several may be active while one replaces another."""

    id: str
    key: SecretStr


class ServerKey(Model):
    """A key of `X-Service-Auth-Token`, bound to one algorithm."""

    kid: str
    alg: Literal["EdDSA", "ES256", "RS256", "HS256"]
    public_key: str | None = None
    """PEM, for the asymmetric algorithms."""
    secret: SecretStr | None = None
    """For HS256; at least 32 bytes."""


class Auth(Model):
    require_sign: bool = True
    require_nonce: bool = False
    sign_keys: list[SignKey] = Field(default_factory=list, max_length=100)
    server_keys: list[ServerKey] = Field(default_factory=list, max_length=100)
    server_audience: str = "parley"
    server_token_max_s: int = Field(default=600, ge=1, le=3600)
    session_sliding_s: int = Field(default=30 * DAY_S, ge=60, le=3660 * DAY_S)
    session_absolute_s: int = Field(default=180 * DAY_S, ge=60, le=3660 * DAY_S)
    sessions_per_user: int = Field(default=10, ge=1, le=100)
    anonymous_login: bool = True
    """Whether `anonymity` and `device` may log in."""


AUTH = ConfigKind("auth", "Sessions, signatures and server tokens", Auth, singleton=True)
