"""Server-Sent Events over HTTP: ready frames written as they are, a ping in silence, a limit on waiting."""

import asyncio
import socket as sockets
from collections.abc import Callable, Mapping
from socket import AF_INET, AF_INET6, IPPROTO_TCP, SO_SNDBUF, SOL_SOCKET
from typing import Any

from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion11
from aiohttp.web import BaseRequest, RequestHandler
from aiohttp_sse import EventSourceResponse

from streams.events import encode_ping
from streams.log import PIECE_BYTES, Followable
from streams.wire.codec import now_ms

_SEND_BUFFER_BYTES = 128 * 1024
"""What the kernel holds for a reader. With one piece in the transport, a reader costs less than 256 KiB."""
_PUSHED_BYTES = 16 * 1024
"""Larger writes wait for the socket to drain, because bytes in the transport do not count as reader lag."""
_LAST_CHUNK = b"0\r\n\r\n"
_TCP_USER_TIMEOUT: int | None = getattr(sockets, "TCP_USER_TIMEOUT", None)
"""Linux alone has it."""


class StreamConnection:
    """What a server's connection knows for its stream: there is one at a time."""

    __slots__ = ()
    on_lost: Callable[[], None] | None
    """What is called when it is lost: else that is seen at the next write alone."""
    send_timeout_s: float | None
    """That of its socket, once it is set."""


class ReaderGone(ConnectionError):
    """The reader left, or has not taken a write for too long. Its stream goes on without it."""


class EventStream(EventSourceResponse):
    """aiohttp-sse's response without its ping task (a ping is due only in silence) and its re-formatting.

    It writes to the transport itself, each time once: the head goes with the first frames.
    """

    _protocol: RequestHandler

    def __init__(self, headers: Mapping[str, str], *, send_timeout_s: float, ping_after_s: float) -> None:
        super().__init__(headers=headers, allow_all_methods=True, send_timeout=None)
        self._send_timeout_s = send_timeout_s
        self._ping_after_s = ping_after_s
        self._head = b""
        """What goes first: the head, and the frames that were pushed before it went."""
        self._sender: asyncio.Task[Any] | None = None
        self._is_lost = False

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        """Make the head: it goes out in `send_all`, with the first frames or just ahead of them."""
        if self.prepared:
            return self._payload_writer
        protocol = self._protocol = request.protocol
        if protocol.transport is None:
            raise ReaderGone
        limit_send_buffer(protocol, self._send_timeout_s)
        self._req, self._payload_writer = request, request.writer
        self._chunked = request.version >= HttpVersion11
        self._keep_alive = self._chunked and request.keep_alive  # else the body ends with the connection
        self._head = self._make_head(*request.version)
        self._headers.clear()  # the stream may last
        return self._payload_writer

    def _make_head(self, major: int, minor: int) -> bytes:
        headers = self._headers
        headers["Cache-Control"] = "no-store"
        headers["Date"] = rfc822_formatted_time()
        if self._chunked:
            headers["Transfer-Encoding"] = "chunked"
        if self._keep_alive:
            del headers["Connection"]
        else:
            headers["Connection"] = "close"
        lines = "\r\n".join([f"{name}: {value}" for name, value in headers.items()])
        return f"HTTP/{major}.{minor} 200 OK\r\n{lines}\r\n\r\n".encode()

    async def send_all(self, source: Followable, after: int) -> None:
        """Write every event of `source` behind id `after`, to its end. `ReaderGone` when the reader is."""
        protocol, writer = self._protocol, self._payload_writer
        assert writer is not None, "it is prepared"
        self._sender = asyncio.current_task()
        if isinstance(protocol, StreamConnection):
            protocol.on_lost = self._lost
        head_due = asyncio.get_running_loop().call_soon(self._send_head)
        following = source.follow(after, idle_s=self._ping_after_s, push=self._push)
        try:
            async for ready in following:
                frames, whole = ready.frames or encode_ping(now_ms()), ready.whole
                if len(frames) <= PIECE_BYTES:
                    self._write(frames, whole=whole)
                else:
                    await self._write_slices(frames, writer, whole=whole)
                del ready, frames  # the wait may be long
                if protocol.writing_paused:
                    await self._drained(writer)
            if not self._eof_sent:
                self._write(b"", whole=True)
        except ConnectionError:
            raise ReaderGone from None
        except asyncio.CancelledError:
            if self._is_lost and self._sender is not None and self._sender.uncancel() == 0:
                raise ReaderGone from None
            raise
        finally:
            head_due.cancel()
            if isinstance(protocol, StreamConnection):
                protocol.on_lost = None
            self._sender = None
            await following.aclose()

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to do, unless the answer was cut: then it has no end."""
        if not self._eof_sent:
            raise ReaderGone

    def _lost(self) -> None:
        """End the sender's wait."""
        if self._sender is not None and not self._is_lost:
            self._is_lost = True
            self._sender.cancel()

    def _push(self, frames: bytes) -> bool:
        """Write `frames` at once, as one chunk, unless they are much, or much that was written is still on its way.

        It is what `send_all` does, without waking its task.
        """
        protocol = self._protocol
        if protocol.writing_paused or len(frames) > _PUSHED_BYTES:
            return False
        transport = protocol.transport
        if transport is None or transport.is_closing():
            return False
        if self._chunked:
            frames = b"%x\r\n%b\r\n" % (len(frames), frames)
        if self._head:
            if len(self._head) > _PUSHED_BYTES:
                return False
            self._head += frames
        else:
            transport.write(frames)
        return True

    def _write(self, frames: bytes, *, whole: bool = False) -> None:
        """Write `frames` as one chunk; `whole` ends the answer."""
        transport = self._open_transport()
        if len(frames) > _PUSHED_BYTES:
            begin, end = self._framing(len(frames), whole=whole)
            transport.writelines((begin, frames, end))  # without a copy
        else:
            if self._chunked:
                chunk = b"%x\r\n%b\r\n" % (len(frames), frames) if frames else b""
                frames = chunk + _LAST_CHUNK if whole else chunk
            transport.write(self._take_head() + frames if self._head else frames)
        if whole:
            self._finished()

    async def _write_slices(self, frames: bytes, writer: AbstractStreamWriter, *, whole: bool) -> None:
        """Write a large frame as one chunk, in slices that share its memory with the log and all other readers.

        Each slice waits until the socket has taken the one before it.
        """
        begin, end = self._framing(len(frames), whole=whole)
        view = memoryview(frames)
        for at in range(0, len(view), PIECE_BYTES):
            if self._protocol.writing_paused:
                await self._drained(writer)
            last = at + PIECE_BYTES >= len(view)
            slice_end = end if last else b""
            self._open_transport().writelines((begin, view[at : at + PIECE_BYTES], slice_end))
            begin = b""
        if whole:
            self._finished()

    def _framing(self, size_bytes: int, *, whole: bool) -> tuple[bytes, bytes]:
        """What goes before and after a chunk: the head too, where it has not gone, and the end of the answer."""
        if not self._chunked:
            return self._take_head(), b""
        return self._take_head() + b"%x\r\n" % size_bytes, b"\r\n" + _LAST_CHUNK if whole else b"\r\n"

    def _open_transport(self) -> asyncio.Transport:
        transport = self._protocol.transport
        if transport is None or transport.is_closing():
            raise ReaderGone
        return transport

    def _finished(self) -> None:
        self._eof_sent = True
        self._req = self._payload_writer = None

    def _send_head(self) -> None:
        """Let the reader have the head, with all that the play said until it first had to wait."""
        transport = self._protocol.transport
        if self._head and transport is not None:
            transport.write(self._take_head())

    def _take_head(self) -> bytes:
        head, self._head = self._head, b""
        if self._payload_writer is not None:
            self._payload_writer.output_size += len(head)  # it has begun: no other answer can be given
        return head

    async def _drained(self, writer: AbstractStreamWriter) -> None:
        """Wait until the reader has taken enough. One who does not, in time, is cut."""
        try:
            async with asyncio.timeout(self._send_timeout_s):
                await writer.drain()
        except TimeoutError:
            if (transport := self._protocol.transport) is not None:
                transport.abort()
            raise ReaderGone from None


def limit_send_buffer(protocol: RequestHandler, send_timeout_s: float) -> None:
    """Limit what the transport and the kernel hold for a reader, and how long the kernel waits for one.

    Neither counts as reader lag. The transport reports that writing is paused as soon as it holds anything, so
    that it never holds more than one write. Set once per connection, which may carry several responses.
    """
    connection = protocol if isinstance(protocol, StreamConnection) else None
    transport = protocol.transport
    if transport is None or (connection is not None and connection.send_timeout_s == send_timeout_s):
        return
    transport.set_write_buffer_limits(high=0)
    socket = transport.get_extra_info("socket")
    if socket is not None and socket.family in {AF_INET, AF_INET6}:
        socket.setsockopt(SOL_SOCKET, SO_SNDBUF, _SEND_BUFFER_BYTES // 2)  # Linux doubles it
        if _TCP_USER_TIMEOUT is not None:
            socket.setsockopt(IPPROTO_TCP, _TCP_USER_TIMEOUT, round(send_timeout_s * 1000))
    if connection is not None:
        connection.send_timeout_s = send_timeout_s
