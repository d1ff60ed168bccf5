"""Format and computation of `X-Service-Sign` (§5).

    t=<unix seconds>,n=<nonce>,v1=<hex>

`v1` is the HMAC-SHA256, with one of the app's keys, of the lines `<t>`, `<n>`, `<METHOD>`,
`<path and query as sent>` and `<hex SHA-256 of the body>`, joined by newlines. `n` is optional; without it, its
line is omitted. While one key replaces another, there may be several `v1`.
"""

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass

from streams.wire.ids import sha256_hex

HEADER = "X-Service-Sign"
WINDOW_S = 300
"""Maximum difference between `t` and the server's clock, in either direction."""
_SIGNATURES = 8
_FIELD = re.compile(r"t=(?P<t>[0-9]{1,12})|n=(?P<n>[A-Za-z0-9_-]{16,64})|v1=(?P<v1>[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Signature:
    t: int
    nonce: str | None
    v1: tuple[str, ...]

    def fresh(self, now: float) -> bool:
        return abs(now - self.t) <= WINDOW_S

    def proves(self, keys: Iterable[str], *, method: str, path_and_query: str, body: bytes) -> bool:
        """Return whether one of the signatures was made with one of the keys."""
        text = signed_text(self.t, self.nonce, method=method, path_and_query=path_and_query, body=body)
        expected = [mac(key, text) for key in keys]
        return any(hmac.compare_digest(right, given) for right in expected for given in self.v1)


def parse(header: str) -> Signature | None:
    """Return the fields of the header, or None if it is malformed."""
    fields: dict[str, list[str]] = {"t": [], "n": [], "v1": []}
    for part in header.split(","):
        field = _FIELD.fullmatch(part.strip())
        if field is None:
            return None
        name = str(field.lastgroup)
        fields[name].append(field[name])
    if len(fields["t"]) != 1 or len(fields["n"]) > 1 or not 1 <= len(fields["v1"]) <= _SIGNATURES:
        return None
    return Signature(int(fields["t"][0]), next(iter(fields["n"]), None), tuple(fields["v1"]))


def signed_text(t: int, nonce: str | None, *, method: str, path_and_query: str, body: bytes) -> bytes:
    lines = [str(t), nonce, method.upper(), path_and_query, sha256_hex(body)]
    return "\n".join(line for line in lines if line is not None).encode("utf-8", "surrogateescape")


def mac(key: str, text: bytes) -> str:
    return hmac.digest(key.encode(), text, "sha256").hex()
