"""One connection: requests out, their answers in, one after the other."""

import asyncio
from collections.abc import AsyncIterable
from typing import Protocol, cast

from vendors.http1.errors import BrokenResponse
from vendors.http1.request import Origin
from vendors.http1.response import Response

_PIECE_BYTES = 64 * 1024
"""Of a large body at a time: TLS encrypts a piece in one go, while the process does nothing else."""
_NOTHING = memoryview(b"")


class Keeper(Protocol):
    """Where connections stay between two requests."""

    def keep(self, connection: "Connection") -> None: ...

    def lost(self, connection: "Connection") -> None: ...


class Connection(asyncio.Protocol):
    """Serves one request at a time; goes back to its keeper once an answer was read to its end."""

    __slots__ = ("_answer", "_first", "_keeper", "_left", "_paused", "_sent", "_transport", "_writable", "origin")

    def __init__(self, origin: Origin, keeper: Keeper) -> None:
        self.origin = origin
        self._keeper = keeper
        self._transport: asyncio.Transport | None = None
        self._first: Response | None = Response(self)
        """Of the first request: its bytes, or the connection's end, may come before it is made."""
        self._answer: Response | None = self._first
        self._left = _NOTHING
        """What of a large body is still to be sent."""
        self._sent = False
        self._paused = False
        self._writable: asyncio.Future[None] | None = None

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def begin(self, head: bytes, body: bytes | None) -> Response:
        """Send a request. Without a body, one in chunks follows by `send_chunks`."""
        transport, answer, self._first = self._transport, self._first, None
        if answer is None:
            assert self._answer is None, "one request at a time"
            answer = self._answer = Response(self)
        if transport is None or transport.is_closing():
            return answer  # which knows why
        self._sent = body is not None
        if body is None:
            transport.write(head)
        elif len(body) <= _PIECE_BYTES:
            transport.write(head + body)
        else:
            transport.write(head)
            self._left = memoryview(body)
            self._send_on()
        return answer

    async def send_chunks(self, answer: Response, body: AsyncIterable[bytes]) -> None:
        """Send the body as it is made, while `answer` may be read. What breaks `body` is told by `answer`."""
        try:
            async for piece in body:
                if piece and not await self._wrote(b"%x\r\n%b\r\n" % (len(piece), piece)):
                    return
            self._sent = await self._wrote(b"0\r\n\r\n")
        except Exception as error:  # noqa: BLE001 - told to who waits, whatever it is
            answer.fail(error)

    async def _wrote(self, chunk: bytes) -> bool:
        """Whether there was still somebody to send it to; waits while more than enough is under way."""
        if self._transport is None or self._transport.is_closing():
            return False
        self._transport.write(chunk)
        if self._writable is not None:
            await self._writable
        return True

    def _send_on(self) -> None:
        transport = self._transport
        while self._left and transport is not None and not transport.is_closing() and self._writable is None:
            piece, self._left = self._left[:_PIECE_BYTES], self._left[_PIECE_BYTES:]
            transport.write(piece)

    def cut(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

    # what an answer wants

    def pause(self) -> None:
        if not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def leave(self) -> None:
        self._answer = None
        self.cut()

    # what the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None:  # nothing was asked for: the vendor's farewell, or what is no HTTP
            self.cut()
            return
        try:
            answer.feed(data)
        except BrokenResponse as error:
            self._answer = None
            answer.end(error)
            self.cut()
            return
        if answer.whole:
            self._over(answer)
        else:
            answer.wake()

    def _over(self, answer: Response) -> None:
        self._answer = None
        if answer.reusable and self._sent and not self._left and self.open:
            self.resume()
            self._keeper.keep(self)
        else:
            self.cut()
        answer.released()

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if (waiting := self._writable) is not None:
            self._writable = None
            if not waiting.done():
                waiting.set_result(None)
            self._send_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._left = _NOTHING
        self.resume_writing()
        self._keeper.lost(self)
        if (answer := self._answer) is not None:
            self._answer = None
            answer.end(exc)
