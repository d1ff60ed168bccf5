"""The reference page and the document behind it. They ask nothing of any other host."""

import asyncio
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Self

from aiohttp import web

from app.caller import Access
from app.endpoint import Call, Endpoint, Handler
from app.notes import Answer, Notes
from app.openapi.document import openapi
from streams.wire.codec import dumps

STATIC = Path(__file__).parent / "static"

# The viewer makes its style elements itself, so these cannot be forbidden.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Cache-Control": "no-cache",  # kept, and asked for again with its ETag
    "Content-Security-Policy": _POLICY,
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

    async def answer(self, request: web.Request) -> web.Response:
        tag = f'W/"{self.tag}"'  # the same for both codings
        headers = {**_HEADERS, "Content-Type": self.content_type, "ETag": tag}
        if any(known.value in {"*", self.tag} for known in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        if _takes_gzip(request.headers.get("Accept-Encoding", "")):
            return web.Response(body=self.packed, headers={**headers, "Content-Encoding": "gzip"})
        body = await asyncio.to_thread(gzip.decompress, self.packed)
        return web.Response(body=body, headers=headers)


def _takes_gzip(accepted: str) -> bool:
    weights = {}
    for part in accepted.split(","):
        coding, _, weight = part.partition(";")
        weights[coding.strip().lower()] = weight.replace(" ", "").lower()
    told = weights.get("gzip", weights.get("*"))
    return told is not None and told.rstrip("0.") != "q="


@cache
def _static(name: str) -> Page:
    """A file of ours by name; the one that is large is stored packed."""
    content_type = f"text/{'html' if name.endswith('.html') else 'javascript'}; charset=utf-8"
    packed = STATIC / f"{name}.gz"
    if packed.exists():
        return Page.of_packed(content_type, packed.read_bytes())
    return Page.of(content_type, (STATIC / name).read_bytes())


async def docs_page(call: Call) -> web.Response:
    """This page."""
    return await _static("reference.html").answer(call.request)


async def docs_viewer(call: Call) -> web.Response:
    """What shows the document on this page."""
    return await _static("scalar.js").answer(call.request)


async def docs_start(call: Call) -> web.Response:
    """How the viewer is started."""
    return await _static("reference.js").answer(call.request)


def docs_routes(interface: Sequence[Endpoint]) -> list[Endpoint]:
    """The rows of the reference page of `interface`, which describe themselves too."""

    @lru_cache(maxsize=1)
    def document(public_url: str) -> Page:
        return Page.of("application/json", dumps(openapi([*interface, *rows], public_url=public_url)))

    async def openapi_json(call: Call) -> web.Response:
        """The OpenAPI document of this server."""
        page = await asyncio.to_thread(document, call.services.settings.public_url)
        return await page.answer(call.request)

    rows = [
        _row("/openapi.json", openapi_json, "application/json"),
        _row("/docs", docs_page, "text/html"),
        _row("/docs/scalar.js", docs_viewer, "text/javascript"),
        _row("/docs/reference.js", docs_start, "text/javascript"),
    ]
    return rows


def _row(path: str, handler: Handler, media_type: str) -> Endpoint:
    answers = {200: Answer("As asked for.", media_type), 304: Answer("The client has it already.")}
    notes = Notes(answers=answers)
    return Endpoint("GET", path, handler, access=Access.PUBLIC, tag="reference", quiet=True, notes=notes)
