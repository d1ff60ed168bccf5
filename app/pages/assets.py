"""Pages that this server shows in a browser: files as they are, which may ask nothing of other hosts."""

import asyncio
import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from aiohttp import web

STATIC = Path(__file__).parent / "static"

_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript"}
_HEADERS = {
    "Cache-Control": "no-cache",  # kept, and asked for again with its ETag
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Page:
    """Bytes that are served as they are, or packed where the client takes that."""

    content_type: str
    packed: bytes
    tag: str

    @classmethod
    def of(cls, content_type: str, body: bytes) -> Self:
        return cls.of_packed(content_type, gzip.compress(body, mtime=0))

    @classmethod
    def of_packed(cls, content_type: str, packed: bytes) -> Self:
        return cls(content_type, packed, hashlib.sha256(packed).hexdigest()[:32])

    async def answer(self, request: web.Request, *, policy: str) -> web.Response:
        """The page, under the `Content-Security-Policy` of the site that it belongs to."""
        tag = f'W/"{self.tag}"'  # the same for both codings
        headers = {**_HEADERS, "Content-Security-Policy": policy, "Content-Type": self.content_type, "ETag": tag}
        if any(known.value in {"*", self.tag} for known in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        if _takes_gzip(request.headers.get("Accept-Encoding", "")):
            return web.Response(body=self.packed, headers={**headers, "Content-Encoding": "gzip"})
        body = await asyncio.to_thread(gzip.decompress, self.packed)
        return web.Response(body=body, headers=headers)


def static_page(name: str, *, without: str = "") -> Page:
    """A file of ours by its name below `STATIC`, as it stands there now; one that is large is stored packed.

    `without`: the lines that contain this text are left out. For files that are not stored packed.
    """
    path, packed = STATIC / name, STATIC / f"{name}.gz"
    stored = packed if packed.exists() else path
    return _read(stored, f"{_TYPES[path.suffix]}; charset=utf-8", stored.stat().st_mtime_ns, without.encode())


@lru_cache(maxsize=256)
def _read(stored: Path, content_type: str, changed_ns: int, without: bytes) -> Page:
    """Cached until the file changes, so that work on a page needs no restart of the server."""
    body = stored.read_bytes()
    if stored.suffix == ".gz":
        return Page.of_packed(content_type, body)
    if without:
        body = b"".join(line for line in body.splitlines(keepends=True) if without not in line)
    return Page.of(content_type, body)


def _takes_gzip(accepted: str) -> bool:
    weights = {}
    for part in accepted.split(","):
        coding, _, weight = part.partition(";")
        weights[coding.strip().lower()] = weight.replace(" ", "").lower()
    told = weights.get("gzip", weights.get("*"))
    return told is not None and told.rstrip("0.") != "q="
