"""Event logs in Valkey for readers on other nodes. Each is a Redis Stream that is bounded and expires."""

from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from storage.valkey.client import Valkey, map_errors
from storage.valkey.pipeline import Word


@dataclass(frozen=True, slots=True)
class Batch:
    """The frames with ids `first` to `last`, concatenated. `closing` marks the last batch of a stream."""

    first: int
    last: int
    frames: bytes
    closing: bool


class Piece(NamedTuple):
    """An entry of the log, possibly with only a part of its frames. `size_bytes` is the size of all its frames."""

    batch: Batch
    size_bytes: int


class LogLost(Exception):
    """Raised when Valkey has lost entries of the log: all of them, or the last ones."""


class LogTaken(Exception):
    """Raised when another process has taken over the stream, and appends to its log."""


class DetachedLog:
    """The log of one stream. The id of an entry is that of its last frame, so event ids can be used to read it."""

    def __init__(
        self,
        valkey: Valkey,
        *,
        app_id: str,
        user_id: str,
        stream_id: str,
        process: str = "",
    ) -> None:
        """`process`: the process that appends. Readers need none."""
        self._valkey = valkey
        self._process = process
        self._key = valkey.key(f"{app_id}:{user_id}", "log", stream_id)
        self._owner_key = f"{self._key}:owner"
        self._entries: deque[tuple[int, int]] = deque()
        """Id and size in bytes of each entry."""
        self._bytes = 0

    async def append(self, batch: Batch, *, begins: bool, keep_bytes: int, keep_s: float) -> None:
        """Append `batch` unless it was appended before. The log expires in `keep_s` seconds.

        The oldest entries are dropped if the log is larger than `keep_bytes`. `begins`: there are no earlier
        batches, or the caller no longer has them. The log then begins with `batch` if it lacks those before it.

        Raises `LogLost` if the log lacks earlier batches, and `LogTaken` if another process has taken over the
        stream.
        """
        if await self._send(batch, begins=begins, keep_s=keep_s) == b"begun":
            self._reset()
        self._entries.append((batch.last, len(batch.frames)))
        self._bytes += len(batch.frames)
        if self._bytes > keep_bytes and len(self._entries) > 1:
            await self._drop_oldest(keep_bytes)

    async def check(self, last: int) -> None:
        """Raise `LogLost` if the log lacks events up to `last`. Its beginning may have been dropped."""
        await self._send(Batch(last + 1, last, b"", closing=False), begins=False, keep_s=0)

    async def _send(self, batch: Batch, *, begins: bool, keep_s: float) -> Any:
        args: list[Word] = [self._process, batch.last, batch.first, batch.frames, int(batch.closing)]
        args += [int(begins), max(1, round(keep_s * 1000))]
        with map_errors():
            answer = await self._valkey.run("append_log", keys=[self._key, self._owner_key], args=args)
        if answer == b"taken":
            raise LogTaken
        if answer == b"lost":
            self._reset()
            raise LogLost
        return answer

    async def take_over(self, *, keep_s: float) -> None:
        """Make this process the only one that can append."""
        with map_errors():
            await self._valkey.call("SET", self._owner_key, self._process, "PX", max(1, round(keep_s * 1000)))

    async def read_all(self, *, max_bytes: int) -> list[bytes] | None:
        """Return all frames so far, or `None` if the first ones are missing or the stream has ended."""
        frames: list[bytes] = []
        while pieces := await self.read(len(frames), offset_bytes=0, max_bytes=max_bytes, wait_s=0):
            for batch, size_bytes in pieces:
                if batch.first > len(frames) + 1 or batch.closing or len(batch.frames) < size_bytes:
                    return None
                # A batch that was written anew may begin with frames that an earlier one has.
                del frames[batch.first - 1 :]
                frames += [frame + b"\n\n" for frame in batch.frames.split(b"\n\n")[:-1]]
        return frames or None

    def _reset(self) -> None:
        self._entries.clear()
        self._bytes = 0

    async def span(self) -> tuple[int, int, bool] | None:
        """Return the first and last event id in the log and whether the last one ends the stream.

        Returns `None` if the log is empty.
        """
        with map_errors():
            oldest = await self._valkey.client.xrange(self._key, count=1)
            newest = await self._valkey.client.xrevrange(self._key, count=1)
        if not oldest or not newest:
            return None
        first, last = _batch(oldest[0]), _batch(newest[0])
        return first.first, last.last, last.closing

    async def read(self, after: int, *, offset_bytes: int, max_bytes: int, wait_s: float) -> list[Piece]:
        """Return the entries after event id `after`, waiting up to `wait_s` for the first one.

        The first `offset_bytes` of the frames are skipped. At most `max_bytes` are returned; an entry that is
        larger is returned in part, unless it also holds frames up to id `after`.
        """
        args: list[Word] = [after, offset_bytes, max_bytes]
        with map_errors():
            entries = await self._valkey.run("read_log", keys=[self._key], args=args)
            if not entries and wait_s > 0:
                entries = await self._next(after, wait_s=wait_s, max_bytes=max_bytes)
                if entries is None:
                    entries = await self._valkey.run("read_log", keys=[self._key], args=args)
        return [
            Piece(_batch((id_, {b"first": first, b"frames": frames, b"closing": closing})), size_bytes)
            for id_, first, closing, size_bytes, frames in entries
        ]

    async def _next(self, after: int, *, wait_s: float, max_bytes: int) -> list[Any] | None:
        """Wait for the next entry and return it in the form of the script's result.

        Returns `None` if the entry is larger than `max_bytes`, and an empty list if none arrives in time.
        """
        read = await self._valkey.blocking.xread(
            {self._key: f"{after}-0"}, count=1, block=max(1, round(wait_s * 1000))
        )
        if not read:
            return []
        [(_, [(id_, entry)])] = cast("Any", read)
        size_bytes = len(entry[b"frames"])
        if size_bytes > max_bytes:
            return None
        return [(id_, entry[b"first"], entry[b"closing"], size_bytes, entry[b"frames"])]

    async def _drop_oldest(self, keep_bytes: int) -> None:
        while self._bytes > keep_bytes and len(self._entries) > 1:
            self._bytes -= self._entries.popleft()[1]
        with map_errors():
            await self._valkey.client.xtrim(self._key, minid=f"{self._entries[0][0]}-0", approximate=False)


def _batch(entry_with_id: Any) -> Batch:
    id_, entry = entry_with_id
    return Batch(
        int(entry[b"first"]), int(id_.partition(b"-")[0]), entry[b"frames"], closing=entry[b"closing"] == b"1"
    )
