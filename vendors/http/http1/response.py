"""An incremental parser of HTTP responses: bytes in, status, headers and body out, however the bytes are split."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

from streams.push import Sink
from streams.tasks import background
from vendors.http.http1.errors import BrokenResponse
from vendors.http.http1.inflating import Decompressor, decompressor

MAX_UNREAD_BYTES = 256 * 1024
"""Above this size of unread body data the socket is paused. A single read may exceed it by up to 256 KiB."""
MAX_HEAD_BYTES = 32 * 1024
"""The limit for the head with all interim responses, and for the framing between two parts of a body."""


class Link(Protocol):
    """The connection of a response."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def abandon(self) -> None:
        """Called when the response is closed before its end."""


class Response:
    """A response for one reader. If it fails, `read` returns the data that arrived before, then raises the error.

    The parser calls the methods whose names begin with `on_`.
    """

    __slots__ = (
        "_bounded",
        "_decompressor",
        "_failed",
        "_fault",
        "_fields",
        "_framing_bytes",
        "_link",
        "_parser",
        "_pieces",
        "_sending",
        "_sink",
        "_unread_bytes",
        "_waiter",
        "complete",
        "content_type",
        "on_body",
        "reusable",
        "started",
        "status",
    )

    def __init__(self) -> None:
        self.status = 0
        """0 until the head is complete."""
        self.started = False
        """Whether any byte has arrived."""
        self.complete = False
        self.reusable = False
        """Whether the connection can be used again once the response is complete."""
        self.content_type = ""
        """The media type without parameters."""
        self._link: Link | None = None
        self._fields: list[bytes] = []
        """Header names and values, alternating."""
        self._bounded = True
        self._decompressor: Decompressor | None = None
        self._pieces: list[bytes] = []
        self.on_body: Callable[[bytes], None] = self._pieces.append
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._sink: Sink[bytes] | None = None
        """Receives data during `push_to`, directly in the transport's callback."""
        self._unread_bytes = 0
        self._framing_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._failed = False
        self._fault: Exception | None = None
        """The error, until it is raised."""
        self._sending: background[None] | None = None

    @property
    def headers(self) -> CIMultiDict[str]:
        fields = [field.decode("latin-1") for field in self._fields]
        return CIMultiDict(zip(fields[::2], fields[1::2], strict=True))

    async def head(self) -> None:
        """Wait until status and headers have arrived."""
        while not self.status:
            if self._failed:
                raise self._take_fault()
            await self._next_event()

    def read(self) -> Awaitable[bytes]:
        """Return all body data that has arrived, waiting for at least one byte, or `b""` at the end."""
        return self._raw() if self._decompressor is None else self._decompressor.read(self._raw)

    async def push_to(self, sink: Sink[bytes]) -> bool:
        """Push the body to `sink` as it arrives. Return true if `sink` stopped, false at the end of the body."""
        while piece := await self.read():
            if not sink(piece):
                return True
            if self._decompressor is None and not self._pieces and not self.complete and not self._failed:
                self._sink = sink
                try:
                    await self._next_event()
                finally:
                    stopped = self._sink is None
                    self._sink = self._waiter = None
                if stopped:
                    return True
        return False

    def send_body_in(self, sending: background[None]) -> None:
        """Send the request body in the background until the response is closed."""
        sending.start()
        self._sending = sending

    async def aclose(self) -> None:
        """Close the response and stop sending the request body."""
        self.close()
        if (sending := self._sending) is not None:
            self._sending = None
            await sending.stop()

    def close(self) -> None:
        """Close the response. If it is incomplete, its connection is closed immediately."""
        if (link := self._link) is not None:
            self._link = None
            link.abandon()
        self._parser = None

    async def _raw(self) -> bytes:
        while not self._pieces:
            if self.complete:
                return b""
            if self._failed:
                raise self._take_fault()
            await self._next_event()
        if self._unread_bytes > MAX_UNREAD_BYTES and self._link is not None:
            self._link.resume()
        self._unread_bytes = 0
        data = b"".join(self._pieces)
        self._pieces.clear()  # Not replaced, because `on_body` is bound to this list.
        return data

    def _next_event(self) -> asyncio.Future[None]:
        """Return a future that is done at the next event of the connection."""
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        return waiter

    # Called by the connection.

    def attach(self, link: Link) -> None:
        """Attach the response to the connection over which its request is sent."""
        self._link = link

    def feed(self, data: bytes) -> None:
        """Parse received data. Raise `BrokenResponse` if it is invalid, after which no more may be fed."""
        assert self._parser is not None, "`feed` after the end"
        self.started = True
        while data:
            if self.status:
                piece, data = data, b""
            elif (room := MAX_HEAD_BYTES - self._framing_bytes) > 0:
                piece, data = data[:room], data[room:]
            else:
                raise BrokenResponse("the head is too large")
            pieces_before = len(self._pieces)
            try:
                self._parser.feed_data(piece)
            except HttpParserUpgrade:
                raise BrokenResponse("the server switches to another protocol") from None
            except HttpParserError as error:
                self.reusable = False
                if not self.complete:
                    raise BrokenResponse(str(error)) from error
            if len(self._pieces) > pieces_before:
                self._framing_bytes = 0
                self._unread_bytes += len(piece)
            else:
                self._framing_bytes += len(piece)
        if self._framing_bytes > MAX_HEAD_BYTES + MAX_UNREAD_BYTES:
            raise BrokenResponse("too much framing without body data")
        if (
            self._unread_bytes > MAX_UNREAD_BYTES
            and self._sink is None
            and not self.complete
            and self._link is not None
        ):
            self._link.pause()

    def end(self, error: Exception | None = None) -> None:
        """End the response: the connection was lost, or `error` makes it unusable."""
        if self.complete:
            return
        if error is None and self.status and not self._bounded:
            self.complete = True
        elif isinstance(error, BrokenResponse) or not self.status:
            self._store_fault(error or ConnectionResetError("the connection was closed before the response"))
        else:
            truncated = BrokenResponse("the response is truncated")
            truncated.__cause__ = error
            self._store_fault(truncated)
        self.detach()

    def fail(self, error: Exception) -> None:
        """Record that sending the request failed. The error is raised to the reader."""
        if not self._failed:
            self._store_fault(error)
        self.wake()

    def _store_fault(self, error: Exception) -> None:
        self._failed = True
        self._fault = error

    def _take_fault(self) -> Exception:
        """Return the error for the reader to raise.

        It is not kept, because its traceback refers to the frames of the readers, and these to this response. Such
        a cycle would keep all that was received in memory until the garbage collector runs.
        """
        fault, self._fault = self._fault, None
        return fault or BrokenResponse("the response has failed")

    def detach(self) -> None:
        """Detach the response from its connection."""
        self._link = None
        self._parser = None
        self.wake()

    def wake(self) -> None:
        """Wake the reader, or push to its sink, after all data of one read has been fed."""
        waiter, pieces = self._waiter, self._pieces
        if waiter is None or waiter.done():
            return
        if pieces and self._sink is not None:
            self._unread_bytes = 0
            data = b"".join(pieces)
            pieces.clear()
            try:
                if not self._sink(data):
                    self._sink = None
            except Exception as error:  # noqa: BLE001 - raised by `push_to`
                waiter.set_exception(error)
                return
        if self._sink is None or self.complete or self._failed:
            waiter.set_result(None)

    # Called by the parser.

    def on_message_begin(self) -> None:
        if self.complete:
            raise BrokenResponse("unexpected data after the response")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # Trailers are ignored.
            self._fields += (name, value)

    def on_headers_complete(self) -> None:
        assert self._parser is not None, "called by the parser"
        status: int = self._parser.get_status_code()
        if status < 200:
            self._fields.clear()
            return
        self.status = status
        self.reusable = self._parser.should_keep_alive()
        fields = dict(zip(map(bytes.lower, self._fields[::2]), self._fields[1::2], strict=True))
        codings = fields.get(b"transfer-encoding", b"").lower()
        self._bounded = (
            codings.endswith(b"chunked") or status in {204, 304} or (not codings and b"content-length" in fields)
        )
        self._decompressor = decompressor(fields.get(b"content-encoding", b"").decode("latin-1"))
        content_type = fields.get(b"content-type", b"").partition(b";")[0].strip().lower()
        self.content_type = content_type.decode("latin-1") if b"/" in content_type else "application/octet-stream"

    def on_message_complete(self) -> None:
        if self.status:
            self.complete = True
