"""Admission of streams: slots per user, one turn per conversation, and the process that has a stream."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Collection, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import structlog

from storage.conversations.detached_logs import DetachedLog
from storage.errors import KeyReused, StreamsMissing, TurnRunning
from storage.processes.heartbeats import Heartbeat
from storage.valkey.client import VALKEY_ERRORS, Valkey, map_errors, store_error
from streams.refusals import REFUSED
from streams.tasks import background, run_all, stopping
from streams.wire.errors import RateLimited, StoreError, ValkeyUnavailable

log = structlog.get_logger()

_KEY_IS_TAKEN = (b"again", b"other")
"""Results of `admit.lua` that are due to the idempotency key."""
_START_ID = 1
"""The id of the event `start`."""
_RETRY_S = 0.5
_AT_ONCE = 100
"""One after the other, hundreds of streams would take minutes in a process whose event loop is busy."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """The value of an `Idempotency-Key` header and the fingerprint of the request that carries it."""

    key: str
    fingerprint: str


class Slot(NamedTuple):
    """The claim of a stream while it runs. `conversation_id` is set if the stream is a turn of a conversation.

    `durable`: another process may take over the stream.
    """

    app_id: str
    user_id: str
    stream_id: str
    conversation_id: str | None = None
    idempotency_key: IdempotencyKey | None = None
    durable: bool = False

    def keys(self, valkey: Valkey) -> list[str]:
        begin = valkey.stream_key(self.app_id, self.user_id)
        keys = [f"{begin}:streams", f"{begin}:stream:{self.stream_id}"]
        if self.conversation_id is not None:
            keys.append(f"{begin}:turn:{self.conversation_id}")
        if self.idempotency_key is not None:
            keys.append(f"{begin}:asked:{self.idempotency_key.key}")
        return keys


@dataclass(frozen=True, slots=True)
class StreamLocation:
    """A stream that runs or can still be read, and the process that has it."""

    stream_id: str
    process: str
    conversation_id: str | None

    @classmethod
    def of(cls, stream_id: str, value: bytes) -> Self:
        process, _, conversation_id = value.decode().partition(" ")
        return cls(stream_id, process, conversation_id or None)


class Admissions:
    """Acquires and releases slots. A release that fails while Valkey is unavailable is retried later."""

    def __init__(self, valkey: Valkey, heartbeat: Heartbeat) -> None:
        self._valkey = valkey
        self._heartbeat = heartbeat
        self._registrations = heartbeat.registrations
        self._held: dict[str, tuple[Slot, float]] = {}
        """Running streams by id: the slot, and the monotonic time at which its entries in Valkey expire."""
        self._readable: dict[str, tuple[Slot, float]] = {}
        """The same for streams that have ended, in the order in which they ended."""
        self._unreleased: dict[str, tuple[Slot, float]] = {}
        """The same for slots whose release Valkey has not received yet."""
        self._has_unreleased = asyncio.Event()

    def acquire(self, slot: Slot, *, limit: int, lifetime_s: float) -> Coroutine[Any, Any, StreamLocation | None]:
        """Acquire `slot`, or return the stream that an earlier request with the same idempotency key started.

        The command is sent by this call, before its result is awaited. Slots held by dead processes are ignored.

        Raises `TurnRunning` if a turn of the conversation is running, `KeyReused` if the idempotency key was used
        for another request, `RateLimited` if the user already has `limit` streams, `StreamsMissing` if Valkey may
        have lost the idempotency key, and `StoreError` if Valkey is unavailable. After a `StoreError`, the slot may
        or may not be held. While a replica takes over from a lost primary, `StreamsMissing` is raised for
        idempotency keys that this process does not know: in a few seconds, Valkey can tell.
        """
        reply = self._admit(slot, limit=limit, lifetime_s=lifetime_s, dead=())
        return self._finish_acquire(reply, slot, limit=limit, lifetime_s=lifetime_s)

    async def _finish_acquire(
        self, reply: Awaitable[list[bytes]], slot: Slot, *, limit: int, lifetime_s: float
    ) -> StreamLocation | None:
        until = time.monotonic() + lifetime_s
        try:
            answer = await reply
            if answer[0] == b"ok":
                self._held[slot.stream_id] = slot, until
                return None
            holders = [
                StreamLocation.of(id_.decode(), value)
                for id_, value in zip(answer[1::2], answer[2::2], strict=True)
            ]
            dead = await self._heartbeat.dead([holder.process for holder in holders])
            if dead and answer[0] in _KEY_IS_TAKEN and await self._can_be_read(holders[0], slot):
                return self._refused(answer, slot, limit=limit)
            if dead:
                answer = await self._admit(slot, limit=limit, lifetime_s=lifetime_s, dead=dead)
        except (*VALKEY_ERRORS, StoreError) as error:
            if location := self._found_here(slot):
                return location
            # The caller either continues without Valkey or releases the slot.
            self._held[slot.stream_id] = slot, until
            self._registrations.lose(slot.app_id, slot.user_id)
            raise self._unavailable(slot, error) from error
        if answer[0] != b"ok":
            return self._refused(answer, slot, limit=limit)
        self._held[slot.stream_id] = slot, until
        return None

    async def _can_be_read(self, holder: StreamLocation, slot: Slot) -> bool:
        """Return whether Valkey has the stream of an earlier request, whose process is dead.

        A stream that broke off before its input was complete does not count, because it cannot answer a repeat. Its
        log ends before the event `user_input`, or does not exist.
        """
        key = slot._replace(stream_id=holder.stream_id).keys(self._valkey)[1]
        if await self._valkey.call("EXISTS", f"{key}:continuation"):
            return True
        copy = DetachedLog(self._valkey, app_id=slot.app_id, user_id=slot.user_id, stream_id=holder.stream_id)
        span = await copy.span()
        return span is not None and span[1] > (_START_ID if holder.conversation_id else 0)

    def take_over(self, slot: Slot, *, lifetime_s: float) -> None:
        """Hold the slot of a stream that this process has claimed, for at most `lifetime_s`."""
        self._held[slot.stream_id] = slot, time.monotonic() + lifetime_s

    def _refused(self, answer: list[bytes], slot: Slot, *, limit: int) -> StreamLocation:
        match answer[0]:
            case b"again":
                return StreamLocation.of(answer[1].decode(), answer[2])
            case b"other":
                raise KeyReused
            case b"turn":
                raise TurnRunning
            case b"limit":
                REFUSED.add(1, "streams_per_user")
                raise RateLimited(f"at most {limit} streams at once")
        if location := self._found_here(slot):  # Valkey is not sure whether it knows the idempotency key.
            return location
        raise StreamsMissing

    def _unavailable(self, slot: Slot, error: Exception) -> StoreError | StreamsMissing:
        failure = error if isinstance(error, StoreError) else store_error(error)
        may_fail_over = isinstance(failure, ValkeyUnavailable) and self._valkey.fails_over
        if slot.idempotency_key and may_fail_over and not self._heartbeat.is_long_without_valkey:
            return StreamsMissing()
        return failure

    def _found_here(self, slot: Slot) -> StreamLocation | None:
        """Return the stream of this process that has the slot's idempotency key. Only for when Valkey cannot tell.

        Raises `KeyReused` if that was another request.
        """
        wanted = slot.idempotency_key
        if wanted is None:
            return None
        for held, until in (*self._held.values(), *self._readable.values()):
            key = held.idempotency_key
            if key is None or key.key != wanted.key or until <= time.monotonic():
                continue
            if (held.app_id, held.user_id) == (slot.app_id, slot.user_id):
                if key.fingerprint != wanted.fingerprint:
                    raise KeyReused
                return StreamLocation(held.stream_id, self._heartbeat.process, held.conversation_id)
        return None

    async def release(self, slot: Slot, *, readable_s: float) -> None:
        """Release `slot`; does nothing if it has expired, or if another process has taken over the stream.

        `find` returns the stream for another `readable_s`.
        """
        until = time.monotonic() + readable_s
        self._readable.pop(slot.stream_id, None)
        if self._held.pop(slot.stream_id, None) is not None and readable_s > 0:
            self._readable[slot.stream_id] = slot, until
        self._drop_unreadable()
        try:
            await self._send_release(slot, readable_s)
        except VALKEY_ERRORS as error:
            log.debug("streams.not_released", error=str(store_error(error)))
            self._unreleased[slot.stream_id] = slot, until
            self._has_unreleased.set()

    def _drop_unreadable(self) -> None:
        now = time.monotonic()
        while self._readable:
            stream_id, (_, until) = next(iter(self._readable.items()))
            if until > now:
                return
            del self._readable[stream_id]

    async def keep_releasing(self) -> None:
        """Retry failed releases until cancelled."""
        while not stopping():
            await self._has_unreleased.wait()
            remaining = list(self._unreleased)
            while remaining:
                batch, remaining = remaining[:_AT_ONCE], remaining[_AT_ONCE:]
                await run_all(map(self._release_again, batch))
            if self._unreleased:
                await asyncio.sleep(_RETRY_S)
            else:
                self._has_unreleased.clear()

    async def keep_restoring(self) -> None:
        """Restore the keys of all running and readable streams whenever Valkey may have lost them."""
        while not stopping():
            await self._registrations.needed.wait()
            if not await self.restore():
                await asyncio.sleep(_RETRY_S)

    async def restore(self) -> bool:
        """Register all running and readable streams whose keys may be missing. Returns whether that is complete."""
        try:
            begun = await self._registrations.begin()
            failed: set[str] = set()
            remaining = [*self._held, *self._readable]
            while remaining:
                batch, remaining = remaining[:_AT_ONCE], remaining[_AT_ONCE:]
                failed.update(*await asyncio.gather(*(self._restore(stream_id, begun) for stream_id in batch)))
            return await self._registrations.finish(begun, failed=failed)
        except StoreError as error:
            self._registrations.needed.set()
            log.debug("streams.not_restored", error=str(error))
            return False

    async def find(self, app_id: str, user_id: str, stream_id: str) -> StreamLocation | None:
        """Return where a stream of this user is, or `None` if it neither runs nor can be read."""
        key = Slot(app_id, user_id, stream_id).keys(self._valkey)[1]
        with map_errors():
            value = await self._valkey.call("GET", key)
        return StreamLocation.of(stream_id, bytes(value)) if isinstance(value, bytes) else None

    async def turn_is_running(self, app_id: str, user_id: str, conversation_id: str) -> bool:
        """Return whether a turn of the conversation is running."""
        key = Slot(app_id, user_id, "", conversation_id).keys(self._valkey)[2]
        with map_errors():
            return bool(await self._valkey.call("EXISTS", key))

    def _admit(
        self, slot: Slot, *, limit: int, lifetime_s: float, dead: Collection[str]
    ) -> Coroutine[Any, Any, list[bytes]]:
        keys, owner = slot.keys(self._valkey), (slot.app_id, slot.user_id)
        return self._valkey.run(
            "admit",
            keys=[*keys, self._registrations.registered_key(*owner)] if slot.idempotency_key else keys,
            args=[
                slot.stream_id,
                self._heartbeat.process,
                slot.conversation_id or "",
                limit,
                round(lifetime_s * 1000),
                slot.idempotency_key.fingerprint if slot.idempotency_key else "",
                int(slot.conversation_id is not None),
                keys[1].removesuffix(slot.stream_id),
                self._registrations.registered_in(*owner) if slot.idempotency_key else "",
                *dead,
            ],
        )

    async def _release_again(self, stream_id: str) -> None:
        """Release a slot whose release has failed. In a cluster, only a part of Valkey may be unavailable."""
        if (entry := self._unreleased.get(stream_id)) is None:
            return
        slot, until = entry
        try:
            await self._send_release(slot, until - time.monotonic())
        except VALKEY_ERRORS as error:
            log.debug("streams.not_released", error=str(store_error(error)))
        else:
            self._unreleased.pop(stream_id, None)

    async def _restore(self, stream_id: str, groups: Collection[str]) -> Collection[str]:
        """Restore the keys of a stream if its group is one of `groups`. Returns the group if that failed."""
        running = stream_id in self._held
        entry = self._entry(stream_id)
        if entry is None or (group := self._valkey.group_of(entry[0].app_id, entry[0].user_id)) not in groups:
            return ()
        slot, until = entry
        lifetime_ms = round((until - time.monotonic()) * 1000)
        if lifetime_ms <= 0:
            return ()
        try:
            await self._send_restore(slot, lifetime_ms, running=running)
            if (after := self._entry(stream_id)) is not entry:
                # The stream has ended in the meantime, and its release may have reached Valkey before the restore.
                await self._send_release(slot, after[1] - time.monotonic() if after else 0)
        except VALKEY_ERRORS as error:
            log.debug("streams.not_restored", error=str(store_error(error)))
            return (group,)
        return ()

    def _send_restore(self, slot: Slot, lifetime_ms: int, *, running: bool) -> Coroutine[Any, Any, int]:
        return self._valkey.run(
            "restore",
            keys=slot.keys(self._valkey),
            args=[
                slot.stream_id,
                self._heartbeat.process,
                slot.conversation_id or "",
                lifetime_ms,
                slot.idempotency_key.fingerprint if slot.idempotency_key else "",
                int(slot.conversation_id is not None),
                int(running),
            ],
        )

    def _entry(self, stream_id: str) -> tuple[Slot, float] | None:
        return self._held.get(stream_id) or self._readable.get(stream_id)

    def _send_release(self, slot: Slot, readable_s: float) -> Coroutine[Any, Any, int]:
        is_turn, has_key = int(slot.conversation_id is not None), int(slot.idempotency_key is not None)
        return self._valkey.run(
            "release",
            keys=slot.keys(self._valkey),
            args=[
                slot.stream_id,
                max(0, round(readable_s * 1000)),
                is_turn,
                has_key,
                self._heartbeat.process if slot.durable else "",
            ],
        )


@asynccontextmanager
async def open_admissions(valkey: Valkey, heartbeat: Heartbeat) -> AsyncIterator[Admissions]:
    """Yield `Admissions` whose background tasks run for the duration of the block."""
    admissions = Admissions(valkey, heartbeat)
    await admissions.restore()
    async with background(admissions.keep_releasing()), background(admissions.keep_restoring()):
        yield admissions
