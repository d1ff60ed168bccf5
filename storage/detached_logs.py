"""Events of a stream in Valkey, for readers on other nodes: a Redis Stream, bounded, that expires."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from redis.exceptions import ResponseError

from storage.pipeline import Word
from storage.redis import Valkey, map_errors


@dataclass(frozen=True, slots=True)
class Batch:
    """Frames with the ids `first` to `last`, joined; `closing`: nothing follows."""

    first: int
    last: int
    frames: bytes
    closing: bool


class Piece(NamedTuple):
    """An entry of the log, or a part of its frames; `size_bytes` is that of all its frames."""

    batch: Batch
    size_bytes: int


class Emptied(Exception):
    """Valkey has lost what was in the log."""


class DetachedLog:
    """One stream's. An entry's id is that of its last frame, so a position is an id too."""

    def __init__(
        self,
        valkey: Valkey,
        *,
        app_id: str,
        user_id: str,
        stream_id: str,
        keep_bytes: int,
        keep_s: Callable[[], float],
    ) -> None:
        self._valkey = valkey
        self._key = valkey.key(f"{app_id}:{user_id}", "log", stream_id)
        self._keep_bytes = keep_bytes
        self._keep_s = keep_s
        """How long the log is kept from now on. Each batch asks for it, because the stream's end shortens it."""
        self._entries: deque[tuple[int, int]] = deque()
        self._bytes = 0

    async def append(self, batch: Batch) -> None:
        """Add `batch`, once even when it is added again; the oldest are dropped for it.

        Raises `Emptied` where Valkey has lost the batches before it; the next batch then begins a new log.
        """
        entry = {"first": batch.first, "frames": batch.frames, "closing": int(batch.closing)}
        with map_errors():
            try:
                added: Any = await self._valkey.client.xadd(
                    self._key,
                    entry,  # type: ignore[arg-type]
                    id=f"{batch.last}-0",
                    nomkstream=bool(self._entries),
                )
                if added is None:
                    self._begin_anew()
                    raise Emptied
            except ResponseError as error:
                if "equal or smaller" not in str(error):
                    raise
            await self._valkey.client.pexpire(self._key, max(1, round(self._keep_s() * 1000)))
        self._entries.append((batch.last, len(batch.frames)))
        self._bytes += len(batch.frames)
        if self._bytes > self._keep_bytes and len(self._entries) > 1:
            await self._drop()

    async def is_emptied(self) -> bool:
        """Whether Valkey has lost what was added here. The next batch then begins a new log."""
        if not self._entries:
            return False
        with map_errors():
            if await self._valkey.client.exists(self._key):
                return False
        self._begin_anew()
        return True

    def _begin_anew(self) -> None:
        self._entries.clear()
        self._bytes = 0

    async def span(self) -> tuple[int, int, bool] | None:
        """The first and the last id that are kept, and whether the last is the stream's."""
        with map_errors():
            oldest = await self._valkey.client.xrange(self._key, count=1)
            newest = await self._valkey.client.xrevrange(self._key, count=1)
        if not oldest or not newest:
            return None
        first, last = _batch(oldest[0]), _batch(newest[0])
        return first.first, last.last, last.closing

    async def read(self, after: int, *, offset_bytes: int, most_bytes: int, wait_s: float) -> list[Piece]:
        """The next entries after id `after`, without the first `offset_bytes` of their frames.

        At most `most_bytes`, of one larger entry a part; nothing once `wait_s` are over. An entry with frames up to
        id `after` is never cut.
        """
        args: list[Word] = [after, offset_bytes, most_bytes]
        with map_errors():
            found = await self._valkey.run("read_log", keys=[self._key], args=args)
            if not found and wait_s > 0:
                found = await self._next(after, wait_s=wait_s, most_bytes=most_bytes)
                if found is None:
                    found = await self._valkey.run("read_log", keys=[self._key], args=args)
        return [
            Piece(_batch((id_, {b"first": first, b"frames": frames, b"closing": closing})), size_bytes)
            for id_, first, closing, size_bytes, frames in found
        ]

    async def _next(self, after: int, *, wait_s: float, most_bytes: int) -> list[Any] | None:
        """Wait for the next entry: as the script returns it, or nothing where it is too large to be taken whole."""
        read = await self._valkey.blocking.xread(
            {self._key: f"{after}-0"}, count=1, block=max(1, round(wait_s * 1000))
        )
        if not read:
            return []
        [(_, [(id_, entry)])] = cast("Any", read)
        size_bytes = len(entry[b"frames"])
        if size_bytes > most_bytes:
            return None
        return [(id_, entry[b"first"], entry[b"closing"], size_bytes, entry[b"frames"])]

    async def _drop(self) -> None:
        while self._bytes > self._keep_bytes and len(self._entries) > 1:
            self._bytes -= self._entries.popleft()[1]
        with map_errors():
            await self._valkey.client.xtrim(self._key, minid=f"{self._entries[0][0]}-0", approximate=False)


def _batch(found: Any) -> Batch:
    id_, entry = found
    return Batch(
        int(entry[b"first"]), int(id_.partition(b"-")[0]), entry[b"frames"], closing=entry[b"closing"] == b"1"
    )
