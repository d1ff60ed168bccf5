"""A client connection: sends requests and receives their responses one after the other."""

import asyncio
from collections.abc import AsyncIterable
from typing import Protocol, cast

from vendors.http.http1.errors import BrokenResponse
from vendors.http.http1.request import Origin
from vendors.http.http1.response import Response

_PIECE_BYTES = 64 * 1024
"""The size of the pieces of a large body. TLS encrypts each piece in one call, which blocks the loop."""
_EMPTY = memoryview(b"")


class ConnectionPool(Protocol):
    """The pool that keeps a connection between two requests."""

    def keep(self, connection: "Connection") -> None: ...

    def lost(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    """Serves one request at a time. It returns to its pool when a response has been read to the end."""

    __slots__ = ("_first", "_paused", "_pool", "_response", "_sent", "_transport", "_unsent", "_writable", "origin")

    def __init__(self, origin: Origin, pool: ConnectionPool) -> None:
        self.origin = origin
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._first: Response | None = Response()
        """The response to the first request.

        It exists early because data or the end may arrive before the request. Until then it does not refer to this
        connection, because a connection that is never made would otherwise be a reference cycle.
        """
        self._response: Response | None = self._first
        self._unsent = _EMPTY
        """The rest of a large body, still to be sent."""
        self._sent = False
        self._paused = False
        self._writable: asyncio.Future[None] | None = None

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def begin(self, head: bytes, body: bytes | None) -> Response:
        """Send a request and return its response. If `body` is `None`, a chunked body follows by `send_chunks`."""
        transport, response, self._first = self._transport, self._first, None
        if response is None:
            assert self._response is None, "one request at a time"
            response = self._response = Response()
        if transport is None or transport.is_closing():
            return response  # `connection_lost` sets its error.
        response.attach(self)
        self._sent = body is not None
        if body is None:
            transport.write(head)
        elif len(body) <= _PIECE_BYTES:
            transport.write(head + body)
        else:
            transport.write(head)
            self._unsent = memoryview(body)
            self._send_rest()
        return response

    async def send_chunks(self, response: Response, body: AsyncIterable[bytes]) -> None:
        """Send a chunked body. Its response may be read meanwhile and raises any exception of `body`."""
        try:
            async for piece in body:
                if piece and not await self._write(b"%x\r\n%b\r\n" % (len(piece), piece)):
                    return
            self._sent = await self._write(b"0\r\n\r\n")
        except Exception as error:  # noqa: BLE001 - raised to the reader of the response
            response.fail(error)

    async def _write(self, chunk: bytes) -> bool:
        """Write a chunk and wait until the transport's buffer has room.

        Return false if the connection is closed.
        """
        if self._transport is None or self._transport.is_closing():
            return False
        self._transport.write(chunk)
        if self._writable is not None:
            await self._writable
        return True

    def _send_rest(self) -> None:
        transport = self._transport
        while self._unsent and transport is not None and not transport.is_closing() and self._writable is None:
            piece, self._unsent = self._unsent[:_PIECE_BYTES], self._unsent[_PIECE_BYTES:]
            transport.write(piece)

    def abort(self) -> None:
        """Close the connection immediately, without sending buffered data."""
        if self._transport is not None:
            self._transport.abort()

    # Called by the response.

    def pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def abandon(self) -> None:
        self._response = None
        self.abort()

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        response = self._response
        if response is None:  # Unexpected data between two requests.
            self.abort()
            return
        try:
            response.feed(data)
        except BrokenResponse as error:
            self._response = None
            response.end(error)
            self.abort()
            return
        if response.complete:
            self._finish(response)
        else:
            response.wake()

    def _finish(self, response: Response) -> None:
        self._response = None
        if response.reusable and self._sent and not self._unsent and self.open:
            self.resume()
            self._pool.keep(self)
        else:
            self.abort()
        response.detach()

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if (waiter := self._writable) is not None:
            self._writable = None
            if not waiter.done():
                waiter.set_result(None)
            self._send_rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._unsent = _EMPTY
        self.resume_writing()
        self._pool.lost(self)
        if (response := self._response) is not None:
            self._response = None
            response.end(exc)
