"""Holds back the events of a stream until they are copied, so that no reader has events that the copy lacks."""

import asyncio

from streams.log import EventLog


class HeldBack:
    """What a stream writes to in place of `log`, which its readers follow. The writer waits for slow readers of it.

    `written` has all events. Each is appended to `log` by `release`. If the process dies, another one continues the
    stream from the copy, so a reader must not have received more than that.
    """

    __slots__ = ("_log", "_writers", "written")

    def __init__(self, log: EventLog) -> None:
        self.written = log.fork()
        self._log = log
        self._writers: list[asyncio.Future[None]] = []

    @property
    def last_id(self) -> int:
        return self.written.last_id

    def put(self, frame: bytes) -> bool:
        """Write a frame without waiting. Return whether there is room for more."""
        self.written.put(frame)
        return not self._full()

    def finish(self, frame: bytes) -> None:
        """Write the last frame without waiting."""
        self.written.finish(frame)

    async def wait_for_room(self) -> None:
        """Wait until few events are held back and no attached reader is too far behind."""
        while self._full():
            released = asyncio.get_running_loop().create_future()
            self._writers.append(released)
            await released
        await self._log.wait_for_room()

    def release(self, last_id: int) -> None:
        """Append the events up to `last_id` to the log that readers follow. Ids that it has are skipped."""
        log, written = self._log, self.written
        for frame in written.frames(log.last_id, last_id):
            if written.closed and log.last_id + 1 == written.last_id:
                log.finish(frame)
            else:
                log.put(frame)
        writers, self._writers = self._writers, []
        for writer in writers:
            if not writer.done():
                writer.set_result(None)

    def _full(self) -> bool:
        return self.written.size_bytes - self._log.size_bytes > self._log.lag_bytes or self._log.full
