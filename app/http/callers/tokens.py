"""Creates what callers send: request signatures and server tokens (§5)."""

import time

import jwt

from app.http.callers.signatures import mac, signed_text


def sign_header(
    key: str,
    *,
    method: str,
    path_and_query: str,
    body: bytes,
    t: int | None = None,
    nonce: str | None = None,
) -> str:
    """Return the value of `X-Service-Sign` for a request. `t` defaults to the current time."""
    if t is None:
        t = int(time.time())
    text = signed_text(t, nonce, method=method, path_and_query=path_and_query, body=body)
    fields = [f"t={t}", *([] if nonce is None else [f"n={nonce}"]), f"v1={mac(key, text)}"]
    return ",".join(fields)


def make_server_token(
    *,
    kid: str,
    alg: str,
    key: str,
    app_id: str,
    audience: str = "parley",
    ttl_s: int = 600,
    sub: str | None = None,
    scope: str | None = None,
    jti: str | None = None,
) -> str:
    """Return a token for `X-Service-Auth-Token`. `key` is the PEM of a private key, or the secret for HS256."""
    now = int(time.time())
    claims = {"iss": app_id, "aud": audience, "iat": now, "exp": now + ttl_s}
    optional = {"sub": sub, "scope": scope, "jti": jti}
    claims |= {name: value for name, value in optional.items() if value is not None}
    return jwt.encode(claims, key, algorithm=alg, headers={"kid": kid})
