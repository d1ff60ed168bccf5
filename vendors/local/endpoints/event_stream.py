"""Streamed responses, whose clients can tell a failure from a complete response."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import structlog
from aiohttp import web

from streams.wire.codec import dumps
from vendors.local.engines.faults import Fault, server_error

log = structlog.get_logger()

EVENT_STREAM = "text/event-stream; charset=utf-8"
DONE = b"data: [DONE]\n\n"


def event(value: dict[str, Any]) -> bytes:
    return b"data: " + dumps(value) + b"\n\n"


async def send(
    request: web.Request, pieces: AsyncGenerator[bytes, None], headers: dict[str, str]
) -> web.StreamResponse:
    """Send `pieces` as they arrive.

    An exception before the first piece is raised, so that the caller can send an error response. After it, an event
    stream ends with an error event, and any other body is cut off.
    """
    response = web.StreamResponse(headers=headers | {"Cache-Control": "no-store"})
    async with aclosing(pieces):
        first = await anext(pieces, b"")
        await response.prepare(request)
        try:
            await response.write(first)
            async for piece in pieces:
                await response.write(piece)
            await response.write_eof()
        except ConnectionError:
            log.debug("client.disconnected", path=request.path)
        except Exception as error:  # noqa: BLE001 - reported to the client
            await _end_with_error(request, response, error)
    return response


async def _end_with_error(request: web.Request, response: web.StreamResponse, error: Exception) -> None:
    fault = error if isinstance(error, Fault) else server_error()
    log.warning("stream.failed", path=request.path, exc_info=None if fault is error else error)
    if response.headers["Content-Type"] == EVENT_STREAM:
        await response.write(event(fault.body()))
        await response.write_eof()
    elif request.transport is not None:
        request.transport.abort()
