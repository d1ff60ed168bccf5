"""Server-Sent Events over HTTP: write encoded frames, send pings while no event arrives, drop slow readers.

No other module uses private members of aiohttp's responses. `tests/libraries/test_aiohttp_sse.py` checks each of
them in the installed version.
"""

import asyncio
import socket as sockets
from collections.abc import Callable, Mapping
from socket import AF_INET, AF_INET6, IPPROTO_TCP, SO_SNDBUF, SOL_SOCKET
from typing import Any

from aiohttp import HttpVersion11
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.web import BaseRequest, RequestHandler
from aiohttp_sse import EventSourceResponse

from streams.events import encode_ping
from streams.log import PIECE_BYTES, Followable
from streams.wire.codec import now_ms

_SEND_BUFFER_BYTES = 128 * 1024
"""Size of the kernel's send buffer. With one piece in the transport, a reader costs less than 256 KiB."""
_PUSHED_BYTES = 16 * 1024
"""Larger writes wait for the socket to drain, because bytes in the transport do not count as reader lag."""
_LAST_CHUNK = b"0\r\n\r\n"
_TCP_USER_TIMEOUT: int | None = getattr(sockets, "TCP_USER_TIMEOUT", None)
"""Available on Linux only."""


class StreamConnection:
    """A server connection that supports event streams. It carries one stream at a time."""

    __slots__ = ()
    on_lost: Callable[[], None] | None
    """Called when the connection is lost. Without it, the loss is noticed only at the next write."""
    send_timeout_s: float | None
    """The send timeout configured on the socket; `None` before it is configured."""


class ReaderGone(ConnectionError):
    """The reader closed the connection, or did not accept data in time. The stream itself continues."""


class EventStream(EventSourceResponse):
    """aiohttp-sse's response without its ping task and its formatting.

    Pings are sent only while no event arrives, and frames arrive encoded. The response writes to the transport
    directly, with one call per write. The head is sent together with the first frames.
    """

    _protocol: RequestHandler

    def __init__(self, headers: Mapping[str, str], *, send_timeout_s: float, ping_after_s: float) -> None:
        super().__init__(headers=headers, allow_all_methods=True, send_timeout=None)
        self._send_timeout_s = send_timeout_s
        self._ping_after_s = ping_after_s
        self._head = b""
        """The unsent head, and the frames pushed before it was sent. Empty once sent."""
        self._sender: asyncio.Task[Any] | None = None
        self._is_lost = False

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        """Build the head. `send_all` sends it, with the first frames or directly before them."""
        if self.prepared:
            return self._payload_writer
        protocol = self._protocol = request.protocol
        if protocol.transport is None:
            raise ReaderGone
        limit_send_buffer(protocol, self._send_timeout_s)
        self._req, self._payload_writer = request, request.writer
        self._chunked = request.version >= HttpVersion11
        self._keep_alive = self._chunked and request.keep_alive  # Without chunks, closing ends the body.
        self._head = self._make_head(*request.version)
        self._headers.clear()  # Free their memory: the stream may last for minutes.
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
        """Write every event of `source` after id `after`, until the stream ends.

        Raises `ReaderGone` if the reader disconnects or is too slow.
        """
        protocol, writer = self._protocol, self._payload_writer
        assert writer is not None, "prepare() was not called"
        self._sender = asyncio.current_task()
        if isinstance(protocol, StreamConnection):
            protocol.on_lost = self._lost
        head_due = asyncio.get_running_loop().call_soon(self._send_head)
        following = source.follow(after, idle_s=self._ping_after_s, push=self._push)
        try:
            async for ready in following:
                frames, final = ready.frames or encode_ping(now_ms()), ready.final
                if len(frames) <= PIECE_BYTES:
                    self._write(frames, final=final)
                else:
                    await self._write_slices(frames, writer, final=final)
                del ready, frames  # Free their memory: the next wait may be long.
                if protocol.writing_paused:
                    await self._drain(writer)
            if not self._eof_sent:
                self._write(b"", final=True)
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
        """Raise `ReaderGone` if the response is incomplete. Otherwise `send_all` has already written its end."""
        if not self._eof_sent:
            raise ReaderGone

    def _lost(self) -> None:
        """Cancel `send_all`, which may be waiting for events."""
        if self._sender is not None and not self._is_lost:
            self._is_lost = True
            self._sender.cancel()

    def _push(self, frames: bytes) -> bool:
        """Write `frames` as one chunk without waking the task of `send_all`.

        Return `False` without writing if `frames` is large or the transport still holds earlier data.
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

    def _write(self, frames: bytes, *, final: bool = False) -> None:
        """Write `frames` as one chunk. If `final`, also end the response."""
        transport = self._open_transport()
        if len(frames) > _PUSHED_BYTES:
            begin, end = self._framing(len(frames), final=final)
            transport.writelines((begin, frames, end))  # This avoids a copy of `frames`.
        else:
            if self._chunked:
                chunk = b"%x\r\n%b\r\n" % (len(frames), frames) if frames else b""
                frames = chunk + _LAST_CHUNK if final else chunk
            transport.write(self._take_head() + frames if self._head else frames)
        if final:
            self._finish()

    async def _write_slices(self, frames: bytes, writer: AbstractStreamWriter, *, final: bool) -> None:
        """Write a large frame as one chunk, in slices that share memory with the log and with all other readers.

        Before each slice, wait until the socket has accepted the previous one.
        """
        begin, end = self._framing(len(frames), final=final)
        view = memoryview(frames)
        for at in range(0, len(view), PIECE_BYTES):
            if self._protocol.writing_paused:
                await self._drain(writer)
            last = at + PIECE_BYTES >= len(view)
            slice_end = end if last else b""
            self._open_transport().writelines((begin, view[at : at + PIECE_BYTES], slice_end))
            begin = b""
        if final:
            self._finish()

    def _framing(self, size_bytes: int, *, final: bool) -> tuple[bytes, bytes]:
        """Return the bytes before and after a chunk, with the unsent head and the end of the response."""
        if not self._chunked:
            return self._take_head(), b""
        return self._take_head() + b"%x\r\n" % size_bytes, b"\r\n" + _LAST_CHUNK if final else b"\r\n"

    def _open_transport(self) -> asyncio.Transport:
        transport = self._protocol.transport
        if transport is None or transport.is_closing():
            raise ReaderGone
        return transport

    def _finish(self) -> None:
        self._eof_sent = True
        self._req = self._payload_writer = None

    def _send_head(self) -> None:
        """Send the head, with the frames that the play emitted before it first had to wait."""
        transport = self._protocol.transport
        if self._head and transport is not None:
            transport.write(self._take_head())

    def _take_head(self) -> bytes:
        head, self._head = self._head, b""
        if self._payload_writer is not None:
            # aiohttp must see that the response has begun, or it may send an error response after this one.
            self._payload_writer.output_size += len(head)
        return head

    async def _drain(self, writer: AbstractStreamWriter) -> None:
        """Wait until the socket has accepted the written data.

        Aborts the connection and raises `ReaderGone` after the send timeout.
        """
        try:
            async with asyncio.timeout(self._send_timeout_s):
                await writer.drain()
        except TimeoutError:
            if (transport := self._protocol.transport) is not None:
                transport.abort()
            raise ReaderGone from None


def limit_send_buffer(protocol: RequestHandler, send_timeout_s: float) -> None:
    """Limit how much the transport and the kernel buffer for a reader, and how long the kernel waits for it.

    Data in these buffers does not count as reader lag. The transport pauses writing as soon as it holds data, so
    it never holds more than one write. A connection, which may carry several responses, is set up once.
    """
    connection = protocol if isinstance(protocol, StreamConnection) else None
    transport = protocol.transport
    if transport is None or (connection is not None and connection.send_timeout_s == send_timeout_s):
        return
    transport.set_write_buffer_limits(high=0)
    socket = transport.get_extra_info("socket")
    if socket is not None and socket.family in {AF_INET, AF_INET6}:
        socket.setsockopt(SOL_SOCKET, SO_SNDBUF, _SEND_BUFFER_BYTES // 2)  # Linux doubles the value.
        if _TCP_USER_TIMEOUT is not None:
            socket.setsockopt(IPPROTO_TCP, _TCP_USER_TIMEOUT, round(send_timeout_s * 1000))
    if connection is not None:
        connection.send_timeout_s = send_timeout_s
