"""Limits the bytes a client may send besides content, and ends connections whose bytes cannot be parsed."""

import asyncio
from contextlib import suppress
from typing import Any

from aiohttp import EMPTY_PAYLOAD, StreamReader, web

from app.http.wire.ingress import SlicedConnection
from streams.kept_errors import stripped
from streams.wire.errors import InvalidParameter, ServiceError

LINE_BYTES = 16 * 1024
"""Maximum length of the request line and of each header field."""
HEADER_BLOCK_BYTES = 16 * 1024
_HEAD_BYTES = LINE_BYTES + HEADER_BLOCK_BYTES + 1024
"""The additional KiB is for empty lines, which may precede the request line."""
_FRAMING_BYTES = 16 * 1024
_DISCARDED_BYTES = 1024 * 1024
_LINGER_S = 2.0
_DISCARD_PAUSE_S = 0.01
_END_OF_HEAD = b"\r\n\r\n"
"""A chunked body ends in the same way."""

NOT_HTTP = InvalidParameter("the request is not valid HTTP")
HEADER_BLOCK_FAULT = f"header block exceeds {HEADER_BLOCK_BYTES} bytes"
_FRAMING_FAULT = f"body: trailers or the extensions of a chunk exceed {_FRAMING_BYTES} bytes"


class BrokenBody(web.RequestPayloadError):
    """Raised when reading a body whose framing cannot be parsed. `fault` is the error to respond with."""

    def __init__(self, fault: ServiceError) -> None:
        super().__init__(str(fault))
        self.fault = fault


class BoundedConnection(SlicedConnection):
    """A server connection that limits the bytes of a head, of trailers and of chunk extensions.

    aiohttp's parser limits the length and the number of fields, which allows 2 MiB, and does not limit chunk
    extensions. Therefore the connection counts the bytes parsed since the last head or the last content. A slice
    that contains either resets the count, so a limit may be exceeded by one slice.

    After bytes that cannot be parsed, nothing more is parsed. Later bytes are read and discarded, up to a limit,
    until the client has received the response. Closing a socket that has unread bytes would reset the connection
    and lose the response.
    """

    __slots__ = (
        "_body",
        "_content_bytes",
        "_discarded_bytes",
        "_ended",
        "_framing_bytes",
        "_known_messages",
        "broken",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, max_line_size=LINE_BYTES, max_field_size=LINE_BYTES, **options)
        self.broken = False
        """Whether bytes arrived that could not be parsed."""
        self._known_messages = 0
        self._body: StreamReader = EMPTY_PAYLOAD
        """The body being parsed; `EMPTY_PAYLOAD` between two requests."""
        self._content_bytes = 0
        """Number of bytes of `_body` that have been parsed."""
        self._framing_bytes = 0
        """Number of bytes parsed since the last head or content; all of them are framing.

        Only one is counted of the bytes that follow the end of a request in the same piece.
        """
        self._discarded_bytes = 0
        self._ended: asyncio.Future[None] | None = None
        """Resolved when nothing more needs to be discarded. Set while the response is being delivered."""

    def parse(self, data: bytes) -> None:
        super().parse(data)
        body = self._body
        content_bytes = body.total_bytes - self._content_bytes
        self.content_bytes += content_bytes
        if self.request_count != self._known_messages:
            self._take_message(data)
        elif body is EMPTY_PAYLOAD:
            self._count(len(data), _HEAD_BYTES, HEADER_BLOCK_FAULT)
        elif body.is_eof():
            self._body = EMPTY_PAYLOAD
            self._content_bytes = 0
            self._framing_bytes = int(_goes_beyond(data, content_bytes))
        elif content_bytes:
            self._content_bytes = body.total_bytes
            self._framing_bytes = 0
        else:
            self._count(len(data), _FRAMING_BYTES, _FRAMING_FAULT)

    def data_received(self, data: bytes) -> None:
        if not self.broken:
            super().data_received(data)
        elif data:
            self._discard(len(data))

    def connection_lost(self, exc: BaseException | None) -> None:
        self._end_lingering()
        super().connection_lost(exc)

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the rest of a response. On a broken connection, wait until the last response has arrived."""
        finished = await super().finish_response(request, resp, start_time)
        if (error := request.content.exception()) is not None:
            stripped(error)  # The body keeps it, and the frames of its readers refer to all that was uploaded.
        if self.broken and not (resp.keep_alive and request.content.is_eof()):
            await self._linger()
        return finished

    @property
    def next_head_began(self) -> bool:
        """Whether part of a head has been parsed behind the last whole request."""
        return (
            self._body is EMPTY_PAYLOAD
            and self._framing_bytes > 0
            and not self.waiting_requests
            and not self.upgraded
        )

    def _take_message(self, data: bytes) -> None:
        self._known_messages = self.request_count
        self._framing_bytes = 0
        # aiohttp itself parses the bytes after an upgrade request, and may have begun the request already.
        error, body = self.newest_request()
        if error is not None:
            stripped(error)  # Its frames refer to the connection and its data.
            self._break(NOT_HTTP)
        else:
            self.content_bytes += body.total_bytes
            self._body = EMPTY_PAYLOAD if body.is_eof() else body
            self._content_bytes = self._body.total_bytes
            if body.is_eof():
                self._framing_bytes = int(_goes_beyond(data, body.total_bytes))

    def _count(self, size_bytes: int, limit_bytes: int, message: str) -> None:
        if self.upgraded:
            return  # aiohttp does not parse these bytes, and limits them itself.
        self._framing_bytes += size_bytes
        if self._framing_bytes > limit_bytes:
            fault = InvalidParameter(message)
            self.add_invalid_request(fault, message)
            self._break(fault)

    def _break(self, fault: ServiceError) -> None:
        self.broken = True
        self.drop_held()
        if not self._body.is_eof():
            # aiohttp does not wake a reader that waits for more of the body.
            self._body.set_exception(BrokenBody(fault))
        self._body = EMPTY_PAYLOAD
        self._content_bytes = 0

    def _discard(self, size_bytes: int) -> None:
        self._discarded_bytes += size_bytes
        self.pause_transport_reading()
        if self._discarded_bytes > _DISCARDED_BYTES:
            self._end_lingering()
        else:  # Otherwise floods on many connections would fill each iteration of the loop with reads.
            asyncio.get_running_loop().call_later(_DISCARD_PAUSE_S, self.resume_transport_reading)

    async def _linger(self) -> None:
        """Close the sending side of the connection, and wait until the client closes its side."""
        transport = self.transport
        if transport is None or transport.is_closing() or self._discarded_bytes > _DISCARDED_BYTES:
            return
        self._ended = asyncio.get_running_loop().create_future()
        transport.write_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                await self._ended

    def _end_lingering(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)


def _goes_beyond(data: bytes, content_bytes: int) -> bool:
    """Return whether `data`, which ends a request, seems to contain part of the next head as well.

    `content_bytes` is the number of bytes in `data` that belong to the request's body. A crafted body can hide the
    part of a head. Such a connection is closed like one that is idle.
    """
    framing_bytes = len(data) - content_bytes
    return (
        framing_bytes >= len(_END_OF_HEAD)  # Less may be the end of a head or a chunk, which began in other pieces.
        and not data.endswith(_END_OF_HEAD)
        and not data.endswith(_END_OF_HEAD, 0, framing_bytes)
    )
