"""Heartbeats of server processes. Each process reports itself to Valkey and PostgreSQL every ten seconds."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress

import structlog

from storage.availability import SECONDS
from storage.postgres.database import Database
from storage.postgres.database import map_errors as map_database_errors
from storage.processes import processes as rows
from storage.processes.registrations import Registrations
from storage.valkey import client as redis
from storage.valkey.client import Valkey
from streams.tasks import background, stopping
from streams.wire.codec import dumps, loads
from streams.wire.errors import StoreError, ValkeyUnavailable

log = structlog.get_logger()

EVERY_S = 10
VOID_AFTER_S = 30
_LATE_S = 2 * EVERY_S
_RETRY_S = 1
_FORGOTTEN_AFTER_S = 3600
_WRITE_S = 5
_STOP_S = 1
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that also counts the time for which the machine was suspended, where the system has one."""


class Heartbeat:
    """The heartbeat of this process, and what this process knows about the others.

    Heartbeats are written to two stores, so that neither a flushed Valkey nor an unreachable PostgreSQL makes a
    running process look dead. Valkey also holds the number of streams of each process, by app.
    """

    def __init__(
        self,
        valkey: Valkey,
        database: Database,
        process: str,
        streams: Callable[[], Mapping[str, int]],
        *,
        void_after_s: float = VOID_AFTER_S,
    ) -> None:
        self.process = process
        self.elsewhere: Counter[str] = Counter()
        """Number of streams in all other processes by app, as of the last beat."""
        self.registrations = Registrations(valkey, database, process, void_after_s=void_after_s)
        self._valkey = valkey
        self._database = database
        self._streams = streams
        self._void_after_s = void_after_s
        self._keys = [valkey.key("processes", "seen"), valkey.key("processes", "reports")]
        self._beat_at = self._reported_at = _now()
        self._unsure_at = float("-inf")
        """When a beat last failed, or came so late that this process itself must have been suspended."""
        self._valkey_failed_at = float("-inf")
        """When Valkey was last unavailable or had lost the entry of this process."""
        self._valkey_lost_at: float | None = None
        """When Valkey, or a part of it, became unavailable; `None` if it is available."""
        self._valkey_fault = ""
        """Why the last beat did not reach Valkey; empty if it did."""
        self._known_to_valkey = False
        """Whether an earlier beat has reached Valkey, so that a missing entry means that Valkey has lost data."""

    async def beat(self) -> None:
        """Report to both stores. Raises `StoreError` if one is unavailable; the other has the report even then."""
        now = _now()
        if now - self._beat_at > _LATE_S:
            self._unsure_at = now
        self._beat_at = now
        try:
            try:
                await self._report_to_valkey()
            finally:
                await self._report_to_database()
        except StoreError:
            self._unsure_at = _now()
            raise

    @property
    def may_seem_dead(self) -> bool:
        """Whether other processes may soon consider this one dead, because its reports reach neither store."""
        return _now() - self._reported_at > self._void_after_s - EVERY_S

    @property
    def is_long_without_valkey(self) -> bool:
        """Whether Valkey, or a part of it, has been unavailable for longer than a failover takes."""
        return self._valkey_lost_at is not None and _now() - self._valkey_lost_at > self._void_after_s

    async def check_valkey(self) -> None:
        """Raise `StoreError` unless Valkey answers, and has accepted the last beat.

        A Valkey whose memory is full answers, but refuses what streams and logins need to write.
        """
        await self._valkey.ping()
        if self._valkey_fault:
            raise ValkeyUnavailable(self._valkey_fault)

    async def _report_to_valkey(self) -> None:
        counts, now = Counter(self._streams()), _now()
        void_ms, forgotten_ms = round(self._void_after_s * 1000), _FORGOTTEN_AFTER_S * 1000
        args: list[str | bytes | int] = [self.process, dumps(dict(counts)), void_ms, forgotten_ms]
        if self._valkey.lost.is_set():
            self._valkey.lost.clear()
            self._valkey_failed_at = _now()
        try:
            with redis.map_errors():
                added, reports, gone = await self._valkey.run("beat", keys=self._keys, args=args)
                SECONDS.add(_now() - now, "valkey")
                if added:
                    self.registrations.lose_all()
                await self.registrations.check()
                await self.registrations.forget(gone)
        except StoreError as error:
            self._valkey_fault = error.what
            self._valkey.lost.set()
            self._valkey_failed_at = _now()
            self._valkey_lost_at = self._valkey_lost_at or _now()
            raise
        self._valkey_lost_at, self._valkey_fault = None, ""
        self._reported_at = _now()
        if added and self._known_to_valkey:
            self._valkey_failed_at = _now()
        self._known_to_valkey = True
        self.elsewhere = sum((Counter(loads(report)) for report in reports if report), Counter()) - counts

    async def _report_to_database(self) -> None:
        now = _now()
        with map_database_errors():
            async with asyncio.timeout(_WRITE_S), self._database.connection() as conn:
                await rows.report(conn, self.process, forget_after_s=_FORGOTTEN_AFTER_S)
        self._reported_at = _now()
        SECONDS.add(self._reported_at - now, "postgres")

    async def run(self) -> None:
        """Beat until cancelled: every ten seconds, and shortly after the connection to Valkey was lost."""
        failing = False
        while not stopping():
            if not failing:
                with suppress(TimeoutError):
                    async with asyncio.timeout(EVERY_S):
                        await self._valkey.lost.wait()
            # A connection that is lost again and again must not cause more than one beat a second.
            await asyncio.sleep(_RETRY_S if failing else max(0.0, self._beat_at + _RETRY_S - _now()))
            if not stopping():
                failing = not await self.try_beat(quiet=failing)

    async def try_beat(self, *, quiet: bool = False) -> bool:
        """Beat, and return whether both stores have the report. A failure is logged, at level debug if `quiet`."""
        try:
            await self.beat()
        except StoreError as error:
            (log.debug if quiet else log.warning)("heartbeat.failed", error=str(error))
            return False
        return True

    async def dead(self, processes: Collection[str]) -> frozenset[str]:
        """Return those of `processes` that have reported to neither store for 30 s.

        Returns an empty set while missing reports may be due to a store or to this process: for 30 s after a
        restart of Valkey, after a failed beat of this process, or after this process was suspended, and while
        PostgreSQL is unavailable. Raises `StoreError` if Valkey is unavailable.
        """
        others = sorted(set(processes) - {self.process, ""})
        now = _now()
        if not others or now - self._beat_at > _LATE_S or now - self._unsure_at < self._void_after_s:
            return frozenset()
        silent = await self._silent_in_valkey(others)
        if not silent:
            return silent
        try:
            async with self._database.connection() as conn:
                return silent - await rows.alive(conn, silent, void_after_s=self._void_after_s)
        except StoreError as error:
            log.debug("heartbeat.check_failed", error=str(error))
            return frozenset()

    async def others(self) -> list[str]:
        """Return the other processes that have reported within the last 30 s.

        PostgreSQL knows them or, while it is unavailable, Valkey. Raises `StoreError` if neither is available.
        """
        try:
            async with self._database.connection() as conn:
                alive = await rows.all_alive(conn, void_after_s=self._void_after_s)
        except StoreError:
            with redis.map_errors():
                names = [name.decode() for name in await self._valkey.call("ZRANGE", self._keys[0], 0, -1)]
                scores = await self._valkey.client.zmscore(self._keys[0], [self.process, *names])
            # By the newest report, because the clock of Valkey may differ.
            oldest = max(float(score or 0) for score in scores) - self._void_after_s * 1000
            alive = [name for name, score in zip(names, scores[1:], strict=True) if float(score or 0) > oldest]
        return sorted(set(alive) - {self.process})

    async def may_lack_streams(self) -> bool:
        """Return whether entries of running streams may be missing in Valkey.

        That is so for 30 s after this process has seen Valkey unavailable or without its data, and while Valkey
        lacks a process that is alive according to PostgreSQL. Each process restores its entries after its first
        beat that reaches Valkey again.
        """
        if self._valkey.lost.is_set() or _now() - self._valkey_failed_at < self._void_after_s:
            return True
        try:
            async with self._database.connection() as conn:
                alive = await rows.all_alive(conn, void_after_s=self._void_after_s)
            with redis.map_errors():
                scores = await self._valkey.client.zmscore(self._keys[0], [self.process, *alive])
        except StoreError:
            return True
        return None in scores

    async def _silent_in_valkey(self, others: list[str]) -> frozenset[str]:
        with redis.map_errors():
            now_ms, uptime_s, scores = await self._valkey.run_source("silent", keys=[self._keys[0]], args=others)
        if uptime_s < self._void_after_s:
            return frozenset()
        dead_before_ms = now_ms - self._void_after_s * 1000
        return frozenset(
            other
            for other, score in zip(others, scores, strict=True)
            if not score or float(score) <= dead_before_ms
        )

    async def stop(self) -> None:
        """Remove this process from both stores, so that everything it still holds is free immediately."""
        with suppress(StoreError), map_database_errors():
            async with asyncio.timeout(_STOP_S), self._database.connection() as conn:
                await rows.remove(conn, self.process)
        with suppress(StoreError, TimeoutError), redis.map_errors():
            async with asyncio.timeout(_STOP_S):
                await self._valkey.client.zrem(self._keys[0], self.process)
                await self.registrations.forget([self.process])


@asynccontextmanager
async def open_heartbeat(
    valkey: Valkey, database: Database, process: str, streams: Callable[[], Mapping[str, int]]
) -> AsyncIterator[Heartbeat]:
    """Beat for the duration of the block. The first beat is sent before the block begins; it may fail."""
    heartbeat = Heartbeat(valkey, database, process, streams)
    await heartbeat.try_beat()
    async with background(heartbeat.run()):
        yield heartbeat
    await heartbeat.stop()


def _now() -> float:
    return time.clock_gettime(_CLOCK)
