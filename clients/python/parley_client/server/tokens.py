"""Tokens of an app's server: the header `X-Service-Auth-Token`."""

import secrets
import time
from dataclasses import dataclass, field
from typing import Literal

import jwt

from parley_client.numbers import rounded

HEADER = "X-Service-Auth-Token"
LIFETIME_S = 60
"""A token is made for each request, so it is short. The server accepts clocks that differ by up to 60 s."""


@dataclass(frozen=True, slots=True)
class ServerKey:
    """A key that is registered in `server_keys` of the app's config of kind `auth`."""

    kid: str
    alg: Literal["EdDSA", "ES256", "RS256", "HS256"]
    key: str = field(repr=False)
    """The private key in PEM format; for HS256, the secret."""


def server_token(
    key: ServerKey,
    app_id: str = "default",
    *,
    user_id: str | None = None,
    scope: str | None = None,
    audience: str = "parley",
    lifetime_s: float = LIFETIME_S,
    now: float | None = None,
    jti: str | None = None,
) -> str:
    """Return a token for one call.

    `user_id` and `scope`, names separated by spaces, restrict it to the paths of a user and to endpoints.
    """
    issued = int(time.time()) if now is None else rounded("now", now)
    claims = {
        "iss": app_id,
        "aud": audience,
        "iat": issued,
        "exp": issued + rounded("lifetime_s", lifetime_s),
        "jti": secrets.token_urlsafe(16) if jti is None else jti,
    }
    optional = {"sub": user_id, "scope": scope}
    claims |= {name: value for name, value in optional.items() if value is not None}
    return jwt.encode(claims, key.key, algorithm=key.alg, headers={"kid": key.kid})
