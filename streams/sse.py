"""Server-Sent Events over HTTP: ready frames written as they are, a ping in silence, a limit on waiting."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import aclosing

from aiohttp.abc import AbstractStreamWriter
from aiohttp.web import BaseRequest, StreamResponse
from aiohttp_sse import EventSourceResponse

from streams.events import encode_ping
from streams.log import Followable
from streams.wire.codec import now_ms

_SEND_BUFFER_BYTES = 256 * 1024


class ReaderGone(ConnectionError):
    """The reader left, or has not taken a write for too long. Its stream goes on without it."""


class EventStream(EventSourceResponse):
    """aiohttp-sse's response without its ping task (a ping is due only in silence) and its re-formatting."""

    def __init__(self, headers: Mapping[str, str], *, send_timeout_s: float, ping_after_s: float) -> None:
        super().__init__(headers=headers, allow_all_methods=True, send_timeout=send_timeout_s)
        self.headers["Cache-Control"] = "no-store"
        del self.headers["Connection"]  # aiohttp knows what the client's version of HTTP wants
        self._send_timeout_s = send_timeout_s
        self._ping_after_s = ping_after_s
        self._watched: set[Callable[[], None]] | None = None

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        if not self.prepared:
            if request.transport is None:
                raise ReaderGone
            self._set_tcp_user_timeout(request)
            self._set_send_buffer(request)
            self._watched = getattr(request.protocol, "watched", None)
        return await StreamResponse.prepare(self, request)

    async def send_all(self, source: Followable, after: int) -> None:
        """Write every event of `source` behind id `after`, to its end. `ReaderGone` when the reader is."""
        watch = _StuckWrite(self._abort_transport, self._send_timeout_s)
        departure = _Departure(self._watched)
        try:
            async with aclosing(source.follow(after, idle_s=self._ping_after_s)) as frames:
                async for _, ready in frames:
                    watch.begin()
                    await self.write(ready or encode_ping(now_ms()))
                    watch.done()
            watch.begin()
            await self.write_eof()
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

    @staticmethod
    def _set_send_buffer(request: BaseRequest) -> None:
        """What the kernel takes for a reader who does not read is no lag that we see: not too much of it."""
        assert request.transport is not None, "it was looked at just before"
        connection = request.transport.get_extra_info("socket")
        if connection is not None and connection.family in {socket.AF_INET, socket.AF_INET6}:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES // 2)  # Linux doubles it


class _Departure:
    """Ends the running task's wait when its connection is lost: else that is seen at the next write alone.

    `watched` holds what the server's connection calls then; none where the server has no such thing.
    """

    __slots__ = ("_seen", "_task", "_watched")

    def __init__(self, watched: set[Callable[[], None]] | None) -> None:
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
