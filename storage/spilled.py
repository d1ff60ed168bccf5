"""Events of a stream in Valkey, for readers on other nodes: a Redis Stream, bounded, that expires."""

from collections import deque
from dataclasses import dataclass
from typing import Any, cast

from redis.exceptions import ResponseError

from storage.redis import Valkey, map_errors

_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Batch:
    """Frames with the ids `first` to `last`, joined; `closing`: nothing follows."""

    first: int
    last: int
    frames: bytes
    closing: bool


class SpilledLog:
    """One stream's. An entry's id is that of its last frame, so a position is an id too."""

    def __init__(
        self, valkey: Valkey, *, app_id: str, user_id: str, stream_id: str, keep_bytes: int, keep_s: float
    ) -> None:
        self._valkey = valkey
        self._key = valkey.key(f"{app_id}:{user_id}", "log", stream_id)
        self._keep_bytes = keep_bytes
        self._keep_ms = round(keep_s * 1000)
        self._entries: deque[tuple[int, int]] = deque()
        self._bytes = 0

    async def append(self, batch: Batch) -> None:
        """Add `batch`, once even when it is added again; the oldest are dropped for it."""
        entry = {"first": batch.first, "frames": batch.frames, "closing": int(batch.closing)}
        with map_errors():
            try:
                await self._valkey.client.xadd(self._key, entry, id=f"{batch.last}-0")  # type: ignore[arg-type]
            except ResponseError as error:
                if "equal or smaller" not in str(error):
                    raise
            await self._valkey.client.pexpire(self._key, self._keep_ms)
        self._entries.append((batch.last, len(batch.frames)))
        self._bytes += len(batch.frames)
        if self._bytes > self._keep_bytes and len(self._entries) > 1:
            await self._drop()

    async def span(self) -> tuple[int, int, bool] | None:
        """The first and the last id that are kept, and whether the last is the stream's."""
        with map_errors():
            oldest = await self._valkey.client.xrange(self._key, count=1)
            newest = await self._valkey.client.xrevrange(self._key, count=1)
        if not oldest or not newest:
            return None
        first, last = _batch(oldest[0]), _batch(newest[0])
        return first.first, last.last, last.closing

    async def read(self, after: int, *, wait_s: float) -> list[Batch]:
        """What is there behind id `after`; nothing once `wait_s` are over."""
        with map_errors():
            found = await self._valkey.blocking.xread(
                {self._key: f"{after}-0"}, count=_AT_ONCE, block=max(1, round(wait_s * 1000))
            )
        return [_batch(entry) for _, entries in cast("list[Any]", found or []) for entry in entries]

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
