"""Files behind signed links, as players and pages fetch them (§2.12): ranges, HEAD, and no guessed types."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from email.utils import formatdate

import structlog
from aiohttp import web

from app.http.caller import Access
from app.http.docs import Docs, OtherResponse
from app.http.endpoint import Call, Endpoint
from storage.objects import Stored, content_type_of
from storage.objects.contract import ObjectsAway
from streams.wire.errors import ItemNotFound, ServiceError

log = structlog.get_logger()

_WRITE_S = 30.0
_RANGE = re.compile(r"bytes=(\d{0,30})-(\d{0,30})", re.ASCII | re.IGNORECASE)
_ANY_PAGE = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Accept-Ranges, Content-Length, Content-Range, ETag",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes `start` to `stop`, without the latter."""

    start: int
    stop: int

    @property
    def size_bytes(self) -> int:
        return self.stop - self.start


def asked_span(header: str | None, size_bytes: int) -> ByteRange | None:
    """What a `Range` of bytes asks of a file: an empty span where the file ends before it.

    None where it asks nothing that we know: several ranges, other units and nonsense give the whole file.
    """
    found = _RANGE.fullmatch(header or "")
    if found is None or not any(found.groups()):
        return None
    first, last = found.groups()
    if not first:
        return ByteRange(max(size_bytes - int(last), 0), size_bytes)
    start = min(int(first), size_bytes)
    if not last:
        return ByteRange(start, size_bytes)
    return ByteRange(start, max(min(int(last) + 1, size_bytes), start)) if int(last) >= int(first) else None


async def serve_file(call: Call) -> web.StreamResponse:
    """Read the file of a link.

    Links are signed and good for a while: take them as they are. One that is wrong, too old, or whose file is
    gone answers the same.
    """
    request, objects = call.request, call.services.objects
    key = call.path["key"]
    left_s = objects.links.left_s(key, request.query.get("e", ""), request.query.get("s", ""))
    if left_s is None:
        raise _nothing()
    try:
        stored = await objects.stat(key)
    except ItemNotFound:
        raise _nothing() from None
    headers = _headers(key, stored, left_s=left_s)
    if _known(request, stored):
        return web.Response(status=304, headers=headers)
    span = asked_span(_honoured_range(request, headers), stored.size_bytes)
    if span is not None and not span.size_bytes:
        refused = {"Content-Range": f"bytes */{stored.size_bytes}", **_ANY_PAGE}
        return web.Response(status=416, headers=refused)
    response = _response(headers, span, stored)
    if request.method == "GET" and response.content_length:
        start = span.start if span is not None else 0
        await _send(request, response, objects.read(key, start=start, length=response.content_length))
    return response


def _nothing() -> ItemNotFound:
    return ItemNotFound("there is no such file, or its link has expired")


def _headers(key: str, stored: Stored, *, left_s: int) -> dict[str, str]:
    return {
        **_ANY_PAGE,
        "Accept-Ranges": "bytes",
        "Cache-Control": f"private, max-age={left_s}",
        "Content-Disposition": f'inline; filename="{key.rpartition("/")[2]}"',
        "Content-Type": content_type_of(key),
        "ETag": f'"{stored.etag}"',
        "Last-Modified": formatdate(stored.modified, usegmt=True),
    }


def _known(request: web.Request, stored: Stored) -> bool:
    """Whether the caller has these bytes already."""
    if "If-None-Match" in request.headers:
        return any(tag.value in {"*", stored.etag} for tag in request.if_none_match or ())
    since = request.if_modified_since
    return since is not None and stored.modified <= since.timestamp()


def _honoured_range(request: web.Request, headers: Mapping[str, str]) -> str | None:
    """Ranges are defined for GET alone, and void where `If-Range` names other bytes."""
    unchanged = request.headers.get("If-Range") in {None, headers["ETag"], headers["Last-Modified"]}
    return request.headers.get("Range") if request.method == "GET" and unchanged else None


def _response(headers: Mapping[str, str], span: ByteRange | None, stored: Stored) -> web.StreamResponse:
    response = web.StreamResponse(headers=headers)
    response.content_length = stored.size_bytes
    if span is not None:
        response.set_status(206)
        response.headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{stored.size_bytes}"
        response.content_length = span.size_bytes
    return response


async def _send(
    request: web.Request,
    response: web.StreamResponse,
    reading: AbstractAsyncContextManager[AsyncIterator[bytes]],
) -> None:
    """Send the bytes. A response that cannot go on is cut: its length says that some are missing."""
    async with reading as pieces:
        try:
            await response.prepare(request)
            async for piece in pieces:
                async with asyncio.timeout(_WRITE_S):
                    await response.write(piece)
        except ConnectionError:
            pass  # the reader left
        except (TimeoutError, ServiceError) as error:
            log.warning("file.cut", path=request.path, error=str(error) or "the reader stopped reading")
            if request.transport is not None:
                request.transport.abort()


_NOTES = Docs(
    headers={"Range": "One range of bytes, such as `bytes=0-1023`."},
    answers={
        200: OtherResponse("The file. `HEAD` gives its headers alone.", "*/*"),
        206: OtherResponse("The range that was asked for.", "*/*"),
        304: OtherResponse("The client has it already."),
        416: OtherResponse("The file ends before the range; `Content-Range` tells where."),
    },
    errors=(_nothing(), ObjectsAway()),
)

FILE_ROUTES = [
    Endpoint(method, "/files/{key:.+}", serve_file, access=Access.PUBLIC, tag="files", docs=_NOTES)
    for method in ("GET", "HEAD")
]
