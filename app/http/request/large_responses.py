"""Large responses: sent in pieces to readers that may stall, with bounds on the memory that they hold."""

import asyncio
from typing import TypeGuard

from aiohttp import web

from app.http.request.held_bytes import HeldBytes, caller_of
from app.http.rows.endpoint import REQUEST_CONTEXT, RequestContext
from app.services import SERVICES
from storage.configs.kinds.limits import LIMITS, Limits
from streams.log import PIECE_BYTES
from streams.sse import ReaderGone, limit_send_buffer
from streams.wire.errors import RateLimited, Unavailable

LARGE_RESPONSE_ERRORS = (RateLimited, Unavailable)
"""The errors of endpoints whose responses may be large."""
_CALLER_BYTES = 8 * 1024 * 1024
_PROCESS_BYTES = 128 * 1024 * 1024


class UnsentBytes:
    """Counts the bytes of large responses from their creation until the reader has them or is disconnected.

    They count for the user, or for the network of a caller without one. A caller and the process may each have one
    response of any size, because a record of a conversation has to be readable whatever its size.
    """

    def __init__(self, *, per_caller: int = _CALLER_BYTES, per_process: int = _PROCESS_BYTES) -> None:
        self._held = HeldBytes(
            per_caller=per_caller,
            per_process=per_process,
            caller_fault="too many large responses have not been read yet",
            process_fault="the server holds too many large responses that have not been read yet",
        )

    def reserve(self, request: web.Request, size_bytes: int) -> None:
        """Count a large response to `request`, at most once. Raises the errors of `HeldBytes.add`."""
        context = request[REQUEST_CONTEXT]
        if context.unsent_bytes or size_bytes <= PIECE_BYTES:
            return
        caller = caller_of(request, context)
        self._held.add(caller, size_bytes)
        context.unsent_bytes, context.unsent_caller = size_bytes, caller

    def release(self, context: RequestContext) -> None:
        """Stop counting the response."""
        self._held.release(context.unsent_caller, context.unsent_bytes)
        context.unsent_bytes = 0


UNSENT_BYTES: web.AppKey[UnsentBytes] = web.AppKey("unsent_bytes", UnsentBytes)


def reserve(request: web.Request, size_bytes: int) -> None:
    """Count a large response to `request` before the work of making it; see `UnsentBytes.reserve`."""
    request.app[UNSENT_BYTES].reserve(request, size_bytes)


def release(request: web.Request) -> None:
    """Count the response to `request` no longer, if it was counted."""
    context = request[REQUEST_CONTEXT]
    if context.unsent_bytes:
        request.app[UNSENT_BYTES].release(context)


def is_large(response: web.StreamResponse, method: str) -> TypeGuard[web.Response]:
    """Whether a body of more than one piece is sent to a request of `method`."""
    return (
        isinstance(response, web.Response)
        and isinstance(response.body, bytes)
        and len(response.body) > PIECE_BYTES
        and method != "HEAD"
    )


async def send_large(request: web.Request, response: web.Response) -> None:
    """Send a large response piece by piece, each within `limits.send_timeout_s`.

    aiohttp would hand the whole body to the transport and wait without a timeout. Raises `ConnectionError` when the
    reader has left or was cut.
    """
    assert isinstance(response.body, bytes), "only such a response is large"
    body = memoryview(response.body)
    reserve(request, len(body))
    send_timeout_s = _send_timeout_s(request)
    await response.prepare(request)
    limit_send_buffer(request.protocol, send_timeout_s)
    for at in range(0, len(body), PIECE_BYTES):
        await _send_piece(request, response, body[at : at + PIECE_BYTES], send_timeout_s)
    await web.StreamResponse.write_eof(response)  # the method of `Response` would send its body


async def _send_piece(
    request: web.Request, response: web.Response, piece: memoryview, send_timeout_s: float
) -> None:
    """Send one piece, and wait until the socket has taken it. A reader that stalls is cut."""
    try:
        async with asyncio.timeout(send_timeout_s):
            await response.write(piece)
            await request.writer.drain()
            return
    except TimeoutError:
        pass
    if request.transport is not None:
        request.transport.abort()
    raise ReaderGone


def _send_timeout_s(request: web.Request) -> float:
    app_id = request[REQUEST_CONTEXT].app_id
    limits = Limits() if app_id is None else request.app[SERVICES].configs.singleton(LIMITS, app_id)
    return limits.send_timeout_s
