"""Static files of the web pages that this server delivers."""

import asyncio
import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from aiohttp import web

from app.http.accept import weights
from streams.wire.page_style import BAR, LOGO_FILE, PARTS, VARIABLES

STATIC = Path(__file__).parent / "static"
DOCS_LINK = 'href="/docs"'
"""The line of a page with this text links to the API reference."""

_TYPES = {
    ".bin": "application/octet-stream",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".wasm": "application/wasm",
}
_HEADERS = {
    "Cache-Control": "no-cache",  # Browsers keep the file and revalidate it with its ETag.
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Page:
    """A static file, sent with gzip if the client accepts that."""

    content_type: str
    gzipped: bytes
    tag: str

    @classmethod
    def of(cls, content_type: str, body: bytes) -> Self:
        return cls.of_gzipped(content_type, gzip.compress(body, mtime=0))

    @classmethod
    def of_gzipped(cls, content_type: str, gzipped: bytes) -> Self:
        return cls(content_type, gzipped, hashlib.sha256(gzipped).hexdigest()[:32])

    async def response(self, request: web.Request, *, policy: str) -> web.Response:
        """Return the response, with `policy` as its `Content-Security-Policy`."""
        tag = f'W/"{self.tag}"'  # The tag is weak, because it is the same with and without gzip.
        headers = {**_HEADERS, "Content-Security-Policy": policy, "Content-Type": self.content_type, "ETag": tag}
        if any(known.value in {"*", self.tag} for known in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        if _accepts_gzip(request):
            return web.Response(body=self.gzipped, headers={**headers, "Content-Encoding": "gzip"})
        body = await asyncio.to_thread(gzip.decompress, self.gzipped)
        return web.Response(body=body, headers=headers)


_SHARED = {"theme.css": VARIABLES, "parts.css": PARTS, "bar.css": BAR, "logo.svg": LOGO_FILE}
"""The styles and the icon of all pages."""
_BAR = b"<!-- bar -->"
"""The place of a page that gets the links of its bar."""
_FILE = re.compile(r"([a-z]+)/[a-z0-9_-]+\.(?:bin|css|js|wasm)", re.ASCII)


def is_part(name: str, folders: frozenset[str]) -> bool:
    """Return whether `name` is a file of all pages, or a style, script or module of one of these folders."""
    found = _FILE.fullmatch(name)
    return name in _SHARED or (found is not None and found[1] in folders and (STATIC / name).is_file())


def static_page(name: str, *, without: tuple[str, ...] = (), bar: str = "") -> Page:
    """Return the current version of the file `name` below `STATIC`. Large files are stored as `name.gz`.

    `without`: lines that contain one of these texts are removed. `bar`: the links of the page's bar. Both only for
    files that are not stored as gzip.
    """
    if name in _SHARED:
        return Page.of(_TYPES[Path(name).suffix], _SHARED[name].encode())
    path, gzipped = STATIC / name, STATIC / f"{name}.gz"
    stored = gzipped if gzipped.exists() else path
    return _read(stored, _TYPES[path.suffix], stored.stat().st_mtime_ns, without, bar)


@lru_cache(maxsize=256)
def _read(stored: Path, content_type: str, changed_ns: int, without: tuple[str, ...], bar: str) -> Page:
    """Read a file. `changed_ns` is part of the cache key, so that an edited file is read again."""
    body = stored.read_bytes()
    if stored.suffix == ".gz":
        return Page.of_gzipped(content_type, body)
    if without:
        lines = body.decode().splitlines(keepends=True)
        body = "".join(line for line in lines if not any(text in line for text in without)).encode()
    if bar:
        body = body.replace(_BAR, bar.encode())
    return Page.of(content_type, body)


def _accepts_gzip(request: web.Request) -> bool:
    accepted = weights(request, "Accept-Encoding")
    return accepted.get("gzip", accepted.get("*", 0.0)) > 0
