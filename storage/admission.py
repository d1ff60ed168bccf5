"""Places of streams: how many a user has at once, whose turn it is, and where a stream is found."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Collection, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import structlog

from storage.heartbeats import Heartbeat
from storage.redis import FAULTS, Valkey, fault, map_errors
from streams.tasks import background, stopping
from streams.wire.errors import InvalidOperation, RateLimited, StoreError

log = structlog.get_logger()

_TRY_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An `Idempotency-Key`, and the fingerprint of what was asked for under it."""

    key: str
    fingerprint: str


class Slot(NamedTuple):
    """What a stream holds while it runs; `conversation_id` where it is a turn."""

    app_id: str
    user_id: str
    stream_id: str
    conversation_id: str | None = None
    asked: IdempotencyKey | None = None

    def keys(self, valkey: Valkey) -> list[str]:
        begin = valkey.key(f"{self.app_id}:{self.user_id}")
        keys = [f"{begin}:streams", f"{begin}:stream:{self.stream_id}"]
        if self.conversation_id is not None:
            keys.append(f"{begin}:turn:{self.conversation_id}")
        if self.asked is not None:
            keys.append(f"{begin}:asked:{self.asked.key}")
        return keys


@dataclass(frozen=True, slots=True)
class StreamLocation:
    """A stream that runs, or that can still be read, and the process that has it."""

    stream_id: str
    process: str
    conversation_id: str | None

    @classmethod
    def of(cls, stream_id: str, value: bytes) -> Self:
        process, _, conversation_id = value.decode().partition(" ")
        return cls(stream_id, process, conversation_id or None)


class Admissions:
    """Takes places and gives them back, also those that Valkey could not be told of at once."""

    def __init__(self, valkey: Valkey, heartbeat: Heartbeat) -> None:
        self._valkey = valkey
        self._heartbeat = heartbeat
        self._held: dict[str, tuple[Slot, float]] = {}
        """By stream that runs: its place, and until when (monotonic) Valkey keeps its entries."""
        self._readable: dict[str, tuple[Slot, float]] = {}
        """The same for streams that have ended, in the order of their ends."""
        self._owed: dict[str, tuple[Slot, float]] = {}
        self._more = asyncio.Event()

    def take(self, slot: Slot, *, limit: int, lifetime_s: float) -> Coroutine[Any, Any, StreamLocation | None]:
        """Take `slot`; where the same was asked for before, the stream that answers it. It is asked for here.

        `InvalidOperation` for a turn under way, or for something else asked for under the same key;
        `RateLimited` over `limit`; `StoreError` while Valkey is away: then the place may be held or not. What
        processes hold that are dead is void.
        """
        asked = self._admit(slot, limit=limit, lifetime_s=lifetime_s, dead=())
        return self._taken(asked, slot, limit=limit, lifetime_s=lifetime_s)

    async def _taken(
        self, asked: Awaitable[list[bytes]], slot: Slot, *, limit: int, lifetime_s: float
    ) -> StreamLocation | None:
        until = time.monotonic() + lifetime_s
        try:
            answer = await asked
            if answer[0] == b"ok":
                self._held[slot.stream_id] = slot, until
                return None
            holders = [
                StreamLocation.of(id_.decode(), value)
                for id_, value in zip(answer[1::2], answer[2::2], strict=True)
            ]
            if dead := await self._heartbeat.dead([holder.process for holder in holders]):
                answer = await self._admit(slot, limit=limit, lifetime_s=lifetime_s, dead=dead)
        except (*FAULTS, StoreError) as error:
            self._held[slot.stream_id] = slot, until  # the caller goes on without Valkey, or gives it back
            self._heartbeat.keys_missing.set()
            raise (error if isinstance(error, StoreError) else fault(error)) from error
        match answer[0]:
            case b"again":
                return StreamLocation.of(answer[1].decode(), answer[2])
            case b"other":
                raise InvalidOperation("Idempotency-Key was used for another request")
            case b"turn":
                raise InvalidOperation("another turn of this conversation is running")
            case b"limit":
                raise RateLimited(f"at most {limit} streams at once", retry_after_s=1)
        self._held[slot.stream_id] = slot, until
        return None

    async def give_back(self, slot: Slot, *, readable_s: float) -> None:
        """Free `slot`; the stream can be found for `readable_s` yet. Without effect when it is void already."""
        until = time.monotonic() + readable_s
        self._readable.pop(slot.stream_id, None)
        if self._held.pop(slot.stream_id, None) is not None and readable_s > 0:
            self._readable[slot.stream_id] = slot, until
        self._drop_unreadable()
        try:
            await self._release(slot, readable_s)
        except FAULTS:
            self._owed[slot.stream_id] = slot, until
            self._more.set()

    def _drop_unreadable(self) -> None:
        now = time.monotonic()
        while self._readable:
            stream_id, (_, until) = next(iter(self._readable.items()))
            if until > now:
                return
            del self._readable[stream_id]

    async def keep_giving_back(self) -> None:
        while not stopping():
            await self._more.wait()
            try:
                while self._owed:
                    stream_id, (slot, until) = next(iter(self._owed.items()))
                    await self._release(slot, until - time.monotonic())
                    self._owed.pop(stream_id, None)
                self._more.clear()
            except FAULTS:
                await asyncio.sleep(_TRY_AGAIN_S)

    async def keep_restoring(self) -> None:
        """Set the keys of all streams that run or can be read again whenever Valkey may lack them."""
        missing = self._heartbeat.keys_missing
        while not stopping():
            await missing.wait()
            missing.clear()
            try:
                for stream_id in [*self._held, *self._readable]:
                    await self._restore(stream_id)
            except FAULTS:
                missing.set()
                await asyncio.sleep(_TRY_AGAIN_S)

    async def find(self, app_id: str, user_id: str, stream_id: str) -> StreamLocation | None:
        """A stream of this user."""
        key = Slot(app_id, user_id, stream_id).keys(self._valkey)[1]
        with map_errors():
            value = await self._valkey.call("GET", key)
        return StreamLocation.of(stream_id, bytes(value)) if isinstance(value, bytes) else None

    async def turn_is_taken(self, app_id: str, user_id: str, conversation_id: str) -> bool:
        """Whether a turn of the conversation is under way."""
        key = Slot(app_id, user_id, "", conversation_id).keys(self._valkey)[2]
        with map_errors():
            return bool(await self._valkey.client.exists(key))

    def _admit(
        self, slot: Slot, *, limit: int, lifetime_s: float, dead: Collection[str]
    ) -> Coroutine[Any, Any, list[bytes]]:
        keys = slot.keys(self._valkey)
        return self._valkey.run(
            "admit",
            keys=keys,
            args=[
                slot.stream_id,
                self._heartbeat.process,
                slot.conversation_id or "",
                limit,
                round(lifetime_s * 1000),
                slot.asked.fingerprint if slot.asked else "",
                int(slot.conversation_id is not None),
                keys[1].removesuffix(slot.stream_id),
                *dead,
            ],
        )

    async def _restore(self, stream_id: str) -> None:
        running = stream_id in self._held
        entry = self._entry(stream_id)
        if entry is None:
            return
        slot, until = entry
        lifetime_ms = round((until - time.monotonic()) * 1000)
        if lifetime_ms <= 0:
            return
        await self._valkey.run_source(
            "restore",
            keys=slot.keys(self._valkey),
            args=[
                slot.stream_id,
                self._heartbeat.process,
                slot.conversation_id or "",
                lifetime_ms,
                slot.asked.fingerprint if slot.asked else "",
                int(slot.conversation_id is not None),
                int(running),
            ],
        )
        if (after := self._entry(stream_id)) is not entry:
            # It ended meanwhile, and its release may have reached Valkey before this did.
            await self._release(slot, after[1] - time.monotonic() if after else 0)

    def _entry(self, stream_id: str) -> tuple[Slot, float] | None:
        return self._held.get(stream_id) or self._readable.get(stream_id)

    def _release(self, slot: Slot, readable_s: float) -> Coroutine[Any, Any, int]:
        turn, asked = int(slot.conversation_id is not None), int(slot.asked is not None)
        return self._valkey.run(
            "release",
            keys=slot.keys(self._valkey),
            args=[slot.stream_id, max(0, round(readable_s * 1000)), turn, asked],
        )


@asynccontextmanager
async def open_admissions(valkey: Valkey, heartbeat: Heartbeat) -> AsyncIterator[Admissions]:
    admissions = Admissions(valkey, heartbeat)
    async with background(admissions.keep_giving_back()), background(admissions.keep_restoring()):
        yield admissions
