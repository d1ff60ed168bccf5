"""Signatures of requests, which apps in production require: the header `X-Service-Sign`."""

import hashlib
import hmac
import secrets
import time

from parley_client.numbers import rounded

HEADER = "X-Service-Sign"


def sign(
    key: str, method: str, target: str, body: bytes = b"", *, t: float | None = None, nonce: str | None = None
) -> str:
    """Return the value of `X-Service-Sign`.

    `target` is the path with the query, exactly as they are sent. `body` is the body of the request; for
    conversations and pronunciation it is only the JSON object at its beginning. `t` is the current time in Unix
    seconds, and `nonce` a random text that makes the signature valid for one request; both have a default.
    """
    t = int(time.time()) if t is None else rounded("t", t)
    nonce = secrets.token_urlsafe(16) if nonce is None else nonce
    text = "\n".join([str(t), nonce, method.upper(), target, hashlib.sha256(body).hexdigest()])
    return f"t={t},n={nonce},v1={hmac.digest(key.encode(), text.encode(), 'sha256').hex()}"
