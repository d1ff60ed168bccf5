"""An answer of HTTP as it is read: its bytes in, its head and its body out, whatever the split."""

import asyncio
from typing import Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

from streams.pouring import Take
from streams.tasks import background
from vendors.lane.errors import BrokenAnswer
from vendors.lane.inflating import Inflating, inflating

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


class Answer:
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
        "_pour",
        "_quiet_bytes",
        "_sending",
        "_unread_bytes",
        "_waiter",
        "begun",
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
        self._link = link
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        self._fields: list[tuple[bytes, bytes]] = []
        self._bounded = True
        self._inflating: Inflating | None = None
        self._pieces: list[bytes] = []
        self._pour: Take[bytes] | None = None
        """Takes what comes, in the read that it comes with."""
        self._unread_bytes = 0
        self._quiet_bytes = 0
        self._waiter: asyncio.Future[None] | None = None
        self._fault: Exception | None = None
        self._sending: background[None] | None = None

    @property
    def headers(self) -> CIMultiDict[str]:
        return CIMultiDict((name.decode("latin-1"), value.decode("latin-1")) for name, value in self._fields)

    @property
    def content_type(self) -> str:
        """Without its parameters."""
        told = self._field(b"content-type").partition(";")[0].strip().lower()
        return told if "/" in told else "application/octet-stream"

    async def head(self) -> None:
        """Wait until status and headers are there."""
        while not self.status:
            if self._fault is not None:
                raise self._fault
            await self._change()

    async def read(self) -> bytes:
        """All of the body that has come, at least a byte; nothing at its end."""
        return await (self._raw() if self._inflating is None else self._inflating.read(self._raw))

    async def pour(self, take: Take[bytes]) -> bool:
        """Give `take` all of the body as it comes. Whether `take` wants no more; else that was its end."""
        while piece := await self.read():
            if not take(piece):
                return True
            if self._inflating is None and not self._pieces and not self.whole and self._fault is None:
                self._pour = take
                try:
                    await self._change()
                finally:
                    stopped, self._pour = self._pour is None, None
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
        return self._taken()

    def _taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        if self._unread_bytes > MOST_UNREAD_BYTES and self._link is not None:
            self._link.resume()
        self._unread_bytes = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _change(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # what the connection tells

    def feed(self, data: bytes) -> None:
        """What came. `BrokenAnswer`: it is no HTTP, and nothing more is to be expected."""
        self.begun = True
        while not self.status and data:
            room = MOST_HEAD_BYTES - self._quiet_bytes
            if room <= 0:
                raise BrokenAnswer("its head is too large")
            head, data = data[:room], data[room:]
            self._quiet_bytes += len(head)
            self._parse(head)
        if data:
            self._quiet_bytes += len(data)
            self._parse(data)
            if self._quiet_bytes > MOST_HEAD_BYTES + MOST_UNREAD_BYTES:
                raise BrokenAnswer("it goes on without a body")
        if self._unread_bytes > MOST_UNREAD_BYTES and self._link is not None and not self.whole:
            self._link.pause()

    def end(self, error: Exception | None = None) -> None:
        """The connection is gone, or `error` makes it useless."""
        if self.whole:
            return
        if error is None and self.status and not self._bounded:
            self.whole = True
        elif isinstance(error, BrokenAnswer) or not self.status:
            self._fault = error or ConnectionResetError("the connection ended without an answer")
        else:
            self._fault = BrokenAnswer("it ended before its end")
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
        if self._waiter is None or self._waiter.done():
            return
        if self._pour is not None and self._pieces:
            try:
                if not self._pour(self._taken()):
                    self._pour = None
            except Exception as error:  # noqa: BLE001 - raised by who pours
                self._waiter.set_exception(error)
                return
        if self._pour is None or self.whole or self._fault is not None:
            self._waiter.set_result(None)

    def _parse(self, data: bytes) -> None:
        assert self._parser is not None, "what is over is fed no more"
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            raise BrokenAnswer("it changes to another protocol") from None
        except HttpParserError as error:
            self.reusable = False
            if not self.whole:
                raise BrokenAnswer(str(error)) from error

    # what the parser tells

    def on_message_begin(self) -> None:
        self.reusable = False  # behind a whole answer nothing was asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:  # those behind a body tell nothing that we need
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        assert self._parser is not None, "the parser is at work"
        status: int = self._parser.get_status_code()
        if status < 200:
            self._fields.clear()
        elif not self.whole:
            self.status = status
            self.reusable = self._parser.should_keep_alive()
            codings = self._field(b"transfer-encoding").lower()
            chunked = codings.endswith("chunked")
            self._bounded = chunked or status in {204, 304} or (not codings and self._has(b"content-length"))
            self._inflating = inflating(self._field(b"content-encoding"))

    def on_body(self, body: bytes) -> None:
        if self.status and not self.whole:
            self._pieces.append(body)
            self._unread_bytes += len(body)
            self._quiet_bytes = 0

    def on_message_complete(self) -> None:
        if self.status:
            self.whole = True

    def _has(self, name: bytes) -> bool:
        return any(told.lower() == name for told, _ in self._fields)

    def _field(self, name: bytes) -> str:
        """The value of a header, of the last one where there are several."""
        return next((value.decode("latin-1") for told, value in reversed(self._fields) if told.lower() == name), "")
