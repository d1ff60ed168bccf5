"""Files behind signed links (§2.12), with range requests, HEAD and fixed content types."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from email.utils import formatdate

import structlog
from aiohttp import web

from app.http.callers.area import Area
from app.http.callers.caller import Access
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path
from storage.objects import ObjectStore, Stored, content_type_of
from storage.objects.contract import ObjectsError, ObjectsUnavailable
from streams.wire.errors import ItemNotFound, ServiceError, listed
from streams.wire.model import Model

log = structlog.get_logger()

_WRITE_S = 30.0
_RANGE = re.compile(r"bytes=(\d{0,30})-(\d{0,30})", re.ASCII | re.IGNORECASE)
_ANY_PAGE = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Accept-Ranges, Content-Length, Content-Range, ETag",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}


class FilePath(Model):
    key: str
    """The file that a signed link names."""


class FileLinkNotFound(ItemNotFound):
    """The file does not exist, or its link is invalid or has expired."""

    def __init__(self, key: str) -> None:
        super().__init__(f"file {listed([key])} does not exist, or its link has expired")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from `start` up to but not including `stop`."""

    start: int
    stop: int

    @property
    def size_bytes(self) -> int:
        return self.stop - self.start


def requested_range(header: str | None, size_bytes: int) -> ByteRange | None:
    """Return the part of a file that a `Range` header requests. It is empty if the file ends before it.

    Return None for no header, several ranges, other units and invalid headers; the whole file is sent then.
    """
    match = _RANGE.fullmatch(header or "")
    if match is None or not any(match.groups()):
        return None
    first, last = match.groups()
    if not first:
        return ByteRange(max(size_bytes - int(last), 0), size_bytes)
    start = min(int(first), size_bytes)
    if not last:
        return ByteRange(start, size_bytes)
    return ByteRange(start, max(min(int(last) + 1, size_bytes), start)) if int(last) >= int(first) else None


async def serve_file(call: Call, path: Path[FilePath]) -> web.StreamResponse:
    """Download the file of a signed link.

    Links are valid for a limited time; use them unchanged. A link that is invalid or expired, or whose file was
    deleted, returns 404.
    """
    request, objects = call.request, call.services.objects
    key = path.key
    left_s = objects.links.left_s(key, request.query.get("e", ""), request.query.get("s", ""))
    if left_s is None:
        raise FileLinkNotFound(key)
    try:
        return await _serve(request, objects, key, left_s=left_s)
    except ItemNotFound:  # It may also be deleted after its size was read.
        raise FileLinkNotFound(key) from None


async def _serve(request: web.Request, objects: ObjectStore, key: str, *, left_s: int) -> web.StreamResponse:
    stored = await objects.stat(key)
    headers = _headers(key, stored, left_s=left_s)
    if _not_modified(request, stored):
        return web.Response(status=304, headers=headers)
    byte_range = requested_range(_range_header(request, headers), stored.size_bytes)
    if byte_range is not None and not byte_range.size_bytes:
        refused = {"Content-Range": f"bytes */{stored.size_bytes}", **_ANY_PAGE}
        return web.Response(status=416, headers=refused)
    response = _response(headers, byte_range, stored)
    if request.method == "GET" and response.content_length:
        start = byte_range.start if byte_range is not None else 0
        await _send(request, response, objects.read(key, start=start, length=response.content_length))
    return response


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


def _not_modified(request: web.Request, stored: Stored) -> bool:
    """Return whether the client already has the current version."""
    if "If-None-Match" in request.headers:
        return any(tag.value in {"*", stored.etag} for tag in request.if_none_match or ())
    since = request.if_modified_since
    return since is not None and stored.modified <= since.timestamp()


def _range_header(request: web.Request, headers: Mapping[str, str]) -> str | None:
    """Return the `Range` header, or None if the method is not GET or `If-Range` names another version."""
    unchanged = request.headers.get("If-Range") in {None, headers["ETag"], headers["Last-Modified"]}
    return request.headers.get("Range") if request.method == "GET" and unchanged else None


def _response(headers: Mapping[str, str], byte_range: ByteRange | None, stored: Stored) -> web.StreamResponse:
    response = web.StreamResponse(headers=headers)
    response.content_length = stored.size_bytes
    if byte_range is not None:
        response.set_status(206)
        response.headers["Content-Range"] = f"bytes {byte_range.start}-{byte_range.stop - 1}/{stored.size_bytes}"
        response.content_length = byte_range.size_bytes
    return response


async def _send(
    request: web.Request,
    response: web.StreamResponse,
    reading: AbstractAsyncContextManager[AsyncIterator[bytes]],
) -> None:
    """Send the file. If it cannot be completed, abort the connection so that the client notices."""
    async with reading as pieces:
        try:
            await response.prepare(request)
            async for piece in pieces:
                async with asyncio.timeout(_WRITE_S):
                    await response.write(piece)
        except ConnectionError:
            pass  # The client has disconnected.
        except (TimeoutError, ServiceError) as error:
            log.warning("file.aborted", path=request.path, error=str(error) or "the client stopped reading")
            if request.transport is not None:
                request.transport.abort()


_DOCS = Docs(
    headers={"Range": "A single byte range, such as `bytes=0-1023`."},
    answers={
        200: OtherResponse("The file. `HEAD` returns only the headers.", "*/*"),
        206: OtherResponse("The requested range.", "*/*"),
        304: OtherResponse("The client already has the current version."),
        416: OtherResponse("The file ends before the range. `Content-Range` states its size."),
    },
)

FILES = Area(
    "files",
    "Files",
    "Audio and other files behind signed links, which responses and events contain. They need no headers.",
    access=Access.PUBLIC,
)

_ERRORS = (FileLinkNotFound, ObjectsError, ObjectsUnavailable)

FILE_ROUTES = [
    Endpoint(method, "/files/{key:.+}", serve_file, FILES, errors=_ERRORS, docs=_DOCS) for method in ("GET", "HEAD")
]
