"""Server-Sent Events over HTTP: ready frames written as they are, a ping in silence, a limit on waiting."""

import asyncio
import socket as sockets
from collections.abc import Callable, Mapping
from contextlib import aclosing
from socket import AF_INET, AF_INET6, IPPROTO_TCP, SO_SNDBUF, SOL_SOCKET

from aiohttp.abc import AbstractStreamWriter
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpVersion11, StreamWriter
from aiohttp.web import BaseRequest, StreamResponse
from aiohttp_sse import EventSourceResponse

from streams.events import encode_ping
from streams.log import Followable
from streams.wire.codec import now_ms

_SEND_BUFFER_BYTES = 256 * 1024
_PUSHED_BYTES = 16 * 1024
"""Of more it is waited until it is on its way: what waits in the transport is no lag that we see."""
_TCP_USER_TIMEOUT: int | None = getattr(sockets, "TCP_USER_TIMEOUT", None)
"""Linux alone has it."""


class StreamConnection:
    """What a server's connection knows for its streams."""

    watched: set[Callable[[], None]]
    """What is called when it is lost."""
    send_timeout_s: float | None
    """That of its socket, once it is set."""


class ReaderGone(ConnectionError):
    """The reader left, or has not taken a write for too long. Its stream goes on without it."""


class EventStream(EventSourceResponse):
    """aiohttp-sse's response without its ping task (a ping is due only in silence) and its re-formatting."""

    def __init__(self, headers: Mapping[str, str], *, send_timeout_s: float, ping_after_s: float) -> None:
        super().__init__(headers=headers, allow_all_methods=True, send_timeout=None)
        self.headers["Cache-Control"] = "no-store"
        del self.headers["Connection"]  # aiohttp knows what the client's version of HTTP wants
        self._send_timeout_s = send_timeout_s
        self._ping_after_s = ping_after_s
        self._connection: StreamConnection | None = None
        self._protocol: BaseProtocol | None = None
        self._chunked = False

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        if not self.prepared:
            if request.transport is None:
                raise ReaderGone
            if isinstance(request.protocol, StreamConnection):
                self._connection = request.protocol
            self._set_socket(request.transport)
            if request.version < HttpVersion11:
                self.force_close()  # there the end of a body without a length is that of its connection
        return await StreamResponse.prepare(self, request)

    async def send_all(self, source: Followable, after: int) -> None:
        """Write every event of `source` behind id `after`, to its end. `ReaderGone` when the reader is."""
        watch = _StuckWrite(self._abort_transport, self._send_timeout_s)
        departure = _Departure(self._connection)
        try:
            following = source.follow(after, idle_s=self._ping_after_s, push=self._push)
            async with aclosing(following) as events:
                async for ready in events:
                    watch.begin()
                    if ready.whole:
                        await self.write_eof(ready.frames)
                    else:
                        await self.write(ready.frames or encode_ping(now_ms()))
                        self._begin_to_push()
                    watch.done()
            watch.begin()
            await self.write_eof()  # unless it went with the last events
            watch.done()
        except ConnectionError:
            raise ReaderGone from None
        except asyncio.CancelledError:
            if departure.seen():
                raise ReaderGone from None
            raise
        finally:
            watch.stop()
            departure.stop()

    def _begin_to_push(self) -> None:
        if self._protocol is None and isinstance(writer := self._payload_writer, StreamWriter):
            self._protocol, self._chunked = writer.protocol, writer.chunked

    def _push(self, frames: bytes) -> bool:
        """Write `frames` at once, as one chunk, unless they are much, or much that was written is still on its way.

        It is `write` without a task. The head goes out with the first write.
        """
        protocol = self._protocol
        if protocol is None or protocol.writing_paused or len(frames) > _PUSHED_BYTES:
            return False
        transport = protocol.transport
        if transport is None or transport.is_closing():
            return False
        transport.write(b"%x\r\n%b\r\n" % (len(frames), frames) if self._chunked else frames)
        return True

    def _set_socket(self, transport: asyncio.Transport) -> None:
        """Have the kernel give up a reader who acknowledges nothing, and hold little for one who reads nothing.

        What it holds is no lag that we see. Set once a connection: streams come one after the other on it.
        """
        if self._connection is not None and self._connection.send_timeout_s == self._send_timeout_s:
            return
        socket = transport.get_extra_info("socket")
        if socket is not None and socket.family in {AF_INET, AF_INET6}:
            socket.setsockopt(SOL_SOCKET, SO_SNDBUF, _SEND_BUFFER_BYTES // 2)  # Linux doubles it
            if _TCP_USER_TIMEOUT is not None:
                socket.setsockopt(IPPROTO_TCP, _TCP_USER_TIMEOUT, round(self._send_timeout_s * 1000))
        if self._connection is not None:
            self._connection.send_timeout_s = self._send_timeout_s


class _Departure:
    """Ends the running task's wait when its connection is lost: else that is seen at the next write alone.

    None is needed where the server's connection is not ours.
    """

    __slots__ = ("_seen", "_task", "_watched")

    def __init__(self, connection: StreamConnection | None) -> None:
        watched = connection.watched if connection is not None else None
        self._task = asyncio.current_task()
        self._watched = watched
        self._seen = False
        if watched is not None:
            watched.add(self._lost)

    def stop(self) -> None:
        if self._watched is not None:
            self._watched.discard(self._lost)

    def seen(self) -> bool:
        """Whether the task's cancellation was ours, which is over with it."""
        if self._seen and self._task is not None:
            return self._task.uncancel() == 0
        return False

    def _lost(self) -> None:
        if self._task is not None and not self._seen:
            self._seen = True
            self._task.cancel()


class _StuckWrite:
    """Cuts the connection of a reader whose write has not drained in time; costs no timer per write."""

    __slots__ = ("_begun", "_cut", "_is_cut", "_limit_s", "_loop", "_timer")

    def __init__(self, cut: Callable[[], None], limit_s: float) -> None:
        self._cut = cut
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._begun: float | None = None
        self._is_cut = False
        self._timer = self._loop.call_later(limit_s, self._check)

    def begin(self) -> None:
        self._begun = self._loop.time()

    def done(self) -> None:
        """A write into a connection that was cut under it returns as if it had been taken."""
        if self._is_cut:
            raise ReaderGone
        self._begun = None

    def stop(self) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        now = self._loop.time()
        if self._begun is not None and now - self._begun >= self._limit_s:
            self._is_cut = True
            self._cut()
            return
        begun = now if self._begun is None else self._begun
        self._timer = self._loop.call_at(begun + self._limit_s, self._check)
