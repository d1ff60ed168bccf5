"""An answer of HTTP as it is read: its bytes in, its head and its body out, whatever the split."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

from streams.push import Sink
from streams.tasks import background
from vendors.http1.errors import BrokenResponse
from vendors.http1.inflating import Inflating, inflating

MOST_UNREAD_BYTES = 256 * 1024
"""Above this nothing more is read from the socket; one read of it (a quarter of a MiB at most) may be above it."""
MOST_HEAD_BYTES = 32 * 1024
"""Of the head with all interim answers before it, and of what stands between two parts of a body."""


class Link(Protocol):
    """The connection that an answer comes over."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def leave(self) -> None:
        """Nobody wants the rest of the answer."""


class Response:
    """For one reader. `read` gives what came before a fault, and then raises the fault.

    The parser calls the methods that begin with `on_`.
    """

    __slots__ = (
        "_bounded",
        "_fault",
        "_fields",
        "_inflating",
        "_link",
        "_parser",
        "_pieces",
        "_quiet_bytes",
        "_sending",
        "_sink",
        "_unread_bytes",
        "_waiter",
        "begun",
        "content_type",
        "on_body",
        "reusable",
        "status",
        "whole",
    )

    def __init__(self, link: Link | None = None) -> None:
        self.status = 0
        """0 until the head is whole."""
        self.begun = False
        """A byte has come."""
        self.whole = False
        self.reusable = False
        """Once it is whole: whether another one may come over the same connection."""
        self.content_type = ""
        """Without its parameters."""
        self._link = link
        self._fields: list[bytes] = []
        """Names and values of headers in turn."""
        self._bounded = True
        self._inflating: Inflating | None = None
        self._pieces: list[bytes] = []
        self.on_body: Callable[[bytes], None] = self._pieces.append
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._sink: Sink[bytes] | None = None
        """Takes what comes, in the read that it comes with."""
        self._unread_bytes = 0
        self._quiet_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._fault: Exception | None = None
        self._sending: background[None] | None = None

    @property
    def headers(self) -> CIMultiDict[str]:
        told = [field.decode("latin-1") for field in self._fields]
        return CIMultiDict(zip(told[::2], told[1::2], strict=True))

    async def head(self) -> None:
        """Wait until status and headers are there."""
        while not self.status:
            if self._fault is not None:
                raise self._fault
            await self._change()

    def read(self) -> Awaitable[bytes]:
        """All of the body that has come, at least a byte; nothing at its end."""
        return self._raw() if self._inflating is None else self._inflating.read(self._raw)

    async def push_to(self, sink: Sink[bytes]) -> bool:
        """Give `sink` all of the body as it comes. Whether `sink` wants no more; else that was its end."""
        while piece := await self.read():
            if not sink(piece):
                return True
            if self._inflating is None and not self._pieces and not self.whole and self._fault is None:
                self._sink = sink
                try:
                    await self._change()
                finally:
                    stopped = self._sink is None
                    self._sink = self._waiter = None
                if stopped:
                    return True
        return False

    def sent_by(self, sending: background[None]) -> None:
        """Begin to send the body beside the answer, for as long as that is read."""
        sending.start()
        self._sending = sending

    async def leave(self) -> None:
        """Close it, and end what still sends the body."""
        self.close()
        if (sending := self._sending) is not None:
            self._sending = None
            await sending.stop()

    def close(self) -> None:
        """Leave it; unless it is whole its connection is cut at once."""
        if (link := self._link) is not None:
            self._link = None
            link.leave()
        self._parser = None

    async def _raw(self) -> bytes:
        while not self._pieces:
            if self.whole:
                return b""
            if self._fault is not None:
                raise self._fault
            await self._change()
        if self._unread_bytes > MOST_UNREAD_BYTES and self._link is not None:
            self._link.resume()
        self._unread_bytes = 0
        taken = b"".join(self._pieces)
        self._pieces.clear()  # the parser goes on with this list
        return taken

    def _change(self) -> asyncio.Future[None]:
        """Done as soon as the connection tells something new."""
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        return waiter

    # what the connection tells

    def feed(self, data: bytes) -> None:
        """What came. `BrokenResponse`: it is no HTTP, and nothing more is to be expected."""
        assert self._parser is not None, "what is over is fed no more"
        self.begun = True
        while data:
            if self.status:
                piece, data = data, b""
            elif (room := MOST_HEAD_BYTES - self._quiet_bytes) > 0:
                piece, data = data[:room], data[room:]
            else:
                raise BrokenResponse("its head is too large")
            already = len(self._pieces)
            try:
                self._parser.feed_data(piece)
            except HttpParserUpgrade:
                raise BrokenResponse("it changes to another protocol") from None
            except HttpParserError as error:
                self.reusable = False
                if not self.whole:
                    raise BrokenResponse(str(error)) from error
            if len(self._pieces) > already:
                self._quiet_bytes = 0
                self._unread_bytes += len(piece)
            else:
                self._quiet_bytes += len(piece)
        if self._quiet_bytes > MOST_HEAD_BYTES + MOST_UNREAD_BYTES:
            raise BrokenResponse("it goes on without a body")
        if (
            self._unread_bytes > MOST_UNREAD_BYTES
            and self._sink is None
            and not self.whole
            and self._link is not None
        ):
            self._link.pause()

    def end(self, error: Exception | None = None) -> None:
        """The connection is gone, or `error` makes it useless."""
        if self.whole:
            return
        if error is None and self.status and not self._bounded:
            self.whole = True
        elif isinstance(error, BrokenResponse) or not self.status:
            self._fault = error or ConnectionResetError("the connection ended without an answer")
        else:
            self._fault = BrokenResponse("it ended before its end")
            self._fault.__cause__ = error
        self.released()

    def fail(self, error: Exception) -> None:
        """The request cannot be sent to its end, which is told to whoever reads the answer."""
        self._fault = self._fault or error
        self.wake()

    def released(self) -> None:
        """It has no connection any more."""
        self._link = None
        self._parser = None
        self.wake()

    def wake(self) -> None:
        """All that has come at once was fed: let the reader have it."""
        waiter, pieces = self._waiter, self._pieces
        if waiter is None or waiter.done():
            return
        if pieces and self._sink is not None:
            self._unread_bytes = 0
            taken = b"".join(pieces)
            pieces.clear()
            try:
                if not self._sink(taken):
                    self._sink = None
            except Exception as error:  # noqa: BLE001 - raised by who pours
                waiter.set_exception(error)
                return
        if self._sink is None or self.whole or self._fault is not None:
            waiter.set_result(None)

    # what the parser tells

    def on_message_begin(self) -> None:
        if self.whole:
            raise BrokenResponse("behind a whole answer nothing was asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # those behind a body tell nothing that we need
            self._fields += (name, value)

    def on_headers_complete(self) -> None:
        assert self._parser is not None, "the parser is at work"
        status: int = self._parser.get_status_code()
        if status < 200:
            self._fields.clear()
            return
        self.status = status
        self.reusable = self._parser.should_keep_alive()
        told = dict(zip(map(bytes.lower, self._fields[::2]), self._fields[1::2], strict=True))
        codings = told.get(b"transfer-encoding", b"").lower()
        self._bounded = (
            codings.endswith(b"chunked") or status in {204, 304} or (not codings and b"content-length" in told)
        )
        self._inflating = inflating(told.get(b"content-encoding", b"").decode("latin-1"))
        content_type = told.get(b"content-type", b"").partition(b";")[0].strip().lower()
        self.content_type = content_type.decode("latin-1") if b"/" in content_type else "application/octet-stream"

    def on_message_complete(self) -> None:
        if self.status:
            self.whole = True
