"""Reading of request bodies: whole, or as parameters followed by other input."""

import asyncio
import time
from io import BytesIO
from typing import Any

from aiohttp import EMPTY_PAYLOAD, StreamReader, web

from app.http.request.held_bodies import HELD_BODIES
from app.http.rows.endpoint import REQUEST_CONTEXT, Call
from storage.configs.kinds.limits import Limits
from streams.body import ChunkReader, InputLimits
from streams.large_json import loads_large_request
from streams.loop_time import wait_for_loop_time
from streams.wire.codec import loads_request
from streams.wire.errors import InvalidParameter, TooLarge

_SMALL_BYTES = 32 * 1024
_AT_ONCE_BYTES = 320 * 1024
"""Bodies up to this size are decoded at once, which takes 10 ms in the worst case."""


async def read_whole(call: Call) -> bytes:
    """Return the whole body. Raises `InvalidParameter` for a body that is encoded, too large or too slow."""
    _check_encoding(call.request)
    began = time.monotonic()
    limit = call.endpoint.body_bytes or call.app_limits.body_bytes
    if (call.request.content_length or 0) > limit:
        raise TooLarge(f"body exceeds {limit} bytes")
    content = call.request.content
    if content.is_eof():  # All of it has arrived, so there is nothing to wait for.
        whole = content.read_nowait()
        _check_size(len(whole), limit)
        return whole
    body, held = BytesIO(), call.request.app[HELD_BODIES]
    deadline = asyncio.get_running_loop().time() + call.app_limits.input_total_s
    while piece := await _next_piece(content, call.app_limits, deadline=deadline):
        body.write(piece)
        _check_size(body.tell(), limit)
        held.grow(call.request, body.tell())
    call.request[REQUEST_CONTEXT].waited_s = time.monotonic() - began
    return body.getvalue()  # This does not copy it.


async def _next_piece(content: StreamReader, limits: Limits, *, deadline: float) -> bytes:
    """Return what arrives next of a body, nothing at its end. Raises `InvalidParameter` if that takes too long."""
    now = asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout_at(min(deadline, now + limits.input_idle_s)):
            return await content.readany()
    except TimeoutError:
        raise InvalidParameter("body timed out") from None


def _check_size(size_bytes: int, limit: int) -> None:
    if size_bytes > limit:
        raise TooLarge(f"body exceeds {limit} bytes")


async def read_json(call: Call, raw: bytes, *, exact: bool) -> Any:
    """Decode a JSON body. Large ones are decoded in several iterations of the event loop."""
    if len(raw) <= _SMALL_BYTES:
        return loads_request(raw, exact=exact)
    if len(raw) > max(_AT_ONCE_BYTES, limit := call.app_limits.body_bytes):
        return await loads_large_request(raw, rest_bytes=limit, exact=exact)
    await wait_for_loop_time()
    return loads_request(raw, exact=exact)


async def read_parameters(call: Call) -> tuple[bytes, ChunkReader]:
    """Return the first JSON object of the body as it was sent, and a reader for the input after it."""
    _check_encoding(call.request)
    limits, content = call.app_limits, call.request.content
    reader = ChunkReader(
        _read_nothing if content is EMPTY_PAYLOAD else content.readchunk,
        InputLimits(
            parameters_bytes=limits.parameters_bytes,
            parameters_s=limits.parameters_s,
            idle_s=limits.input_idle_s,
            total_s=limits.input_total_s,
        ),
        buffered=content.read_nowait,
        received=lambda: content.total_bytes,
        arrived=content.is_eof,
    )
    began = time.monotonic()
    raw = await reader.first_json()
    call.request[REQUEST_CONTEXT].waited_s = time.monotonic() - began
    return raw, reader


async def _read_nothing() -> tuple[bytes, bool]:
    """Return the end of a body. All requests without one share `EMPTY_PAYLOAD`, which returns the end only once."""
    return b"", False


def _check_encoding(request: web.Request) -> None:
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise InvalidParameter("Content-Encoding is not supported in requests")
