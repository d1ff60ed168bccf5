"""`X-Service-Sign`: what is signed, and the two sides of it (§5).

    t=<unix seconds>,n=<nonce>,v1=<hex>

`v1` is the HMAC-SHA256, with one of the app's keys, of the lines `<t>`, `<n>`, `<METHOD>`,
`<path and query as sent>` and `<hex SHA-256 of the body>`, joined by newlines. `n` is optional: without it
its line is left out. Several `v1` may stand while one key replaces another.
"""

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass

from streams.wire.ids import sha256_hex

HEADER = "X-Service-Sign"
WINDOW_S = 300
"""How far `t` may be off, either way."""
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
        """Whether one of the signatures was made with one of the keys."""
        text = signed_text(self.t, self.nonce, method=method, path_and_query=path_and_query, body=body)
        right = [mac(key, text) for key in keys]
        return any(hmac.compare_digest(one, given) for one in right for given in self.v1)


def parse(header: str) -> Signature | None:
    """The header's fields; nothing when it is not well formed."""
    found: dict[str, list[str]] = {"t": [], "n": [], "v1": []}
    for part in header.split(","):
        field = _FIELD.fullmatch(part.strip())
        if field is None:
            return None
        name = str(field.lastgroup)
        found[name].append(field[name])
    if len(found["t"]) != 1 or len(found["n"]) > 1 or not 1 <= len(found["v1"]) <= _SIGNATURES:
        return None
    return Signature(int(found["t"][0]), next(iter(found["n"]), None), tuple(found["v1"]))


def signed_text(t: int, nonce: str | None, *, method: str, path_and_query: str, body: bytes) -> bytes:
    lines = [str(t), nonce, method.upper(), path_and_query, sha256_hex(body)]
    return "\n".join(line for line in lines if line is not None).encode("utf-8", "surrogateescape")


def mac(key: str, text: bytes) -> str:
    return hmac.digest(key.encode(), text, "sha256").hex()
