"""Signed links to objects, which consist of a key, an expiry time and a signature of both."""

import hashlib
import hmac
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable

from storage.objects.keys import content_type_of

LINK_S = 24 * 60 * 60


class Links:
    """Creates and checks links of the form `<base>/files/<key>?e=<Unix seconds>&s=<signature>`."""

    def __init__(self, secret: bytes, public_url: str, *, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret
        self._base = f"{public_url.rstrip('/')}/files/"
        self._clock = clock

    def url(self, key: str, *, valid_s: int = LINK_S) -> str:
        content_type_of(key)
        expiry = str(int(self._clock()) + valid_s)
        return f"{self._base}{key}?e={expiry}&s={self._signature(key, expiry)}"

    def left_s(self, key: str, expiry: str, signature: str) -> int | None:
        """Return the remaining validity of a link in seconds, or `None` if it is forged or has expired."""
        expected = self._signature(key, expiry).encode()
        if not hmac.compare_digest(expected, signature.encode("utf-8", "replace")):
            return None
        remaining_s = int(expiry) - int(self._clock())
        return remaining_s if remaining_s > 0 else None

    def _signature(self, key: str, expiry: str) -> str:
        text = f"{expiry}\n{key}".encode("utf-8", "replace")
        return urlsafe_b64encode(hmac.digest(self._secret, text, hashlib.sha256)).rstrip(b"=").decode()
