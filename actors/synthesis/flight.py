"""Synthesize a text once if several streams need it at the same time ("single flight").

The first stream leads the flight: it calls the vendor. The others wait for its result.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from storage.conversations.speech_cache import SpeechCache, SpeechKey
from streams.tasks import background, stopping
from streams.wire.errors import StoreError
from streams.wire.ids import new_id

_POLL_EVERY_S = 0.05
_MAX_BLOCKED_S = 5.0

Outcome = Literal["stored", "failed", "unshared", "gone"]
_OUTCOMES: dict[str, Outcome] = {"stored": "stored", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class FlightResult:
    """The result of a flight for those who wait for it.

    `stored`: the speech is in the cache, spoken by `voice`. `failed`: the leader could not get the speech.
    `unshared`: the leader does not share its result. `gone`: the leader was cancelled or has died.
    """

    outcome: Outcome
    voice: str = ""


FAILED = FlightResult("failed")
UNSHARED = FlightResult("unshared")
GONE = FlightResult("gone")


class Flight:
    """A synthesis that other streams may wait for, from its leader's point of view."""

    def __init__(self, key: SpeechKey, cache: SpeechCache, *, max_blocked_s: float) -> None:
        self.token = new_id()
        self.result: asyncio.Future[FlightResult] = asyncio.get_running_loop().create_future()
        self._key = key
        self._cache = cache
        self._max_blocked_s = max_blocked_s
        self._blocked_since: float | None = None

    async def finish(self, result: FlightResult) -> None:
        """Publish the result to those who wait. Only the first call has an effect."""
        if self.result.done():
            return
        self.result.set_result(result)
        message = "" if result is GONE else f"{result.outcome} {result.voice}"
        with suppress(StoreError):  # Other processes notice the end when the lease expires.
            await self._cache.end_flight(self._key, self.token, message)

    @contextmanager
    def blocked(self) -> Iterator[None]:
        """Mark the block as a wait for the leader's own listener."""
        self._blocked_since = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self._blocked_since = None

    async def keep_lease(self) -> None:
        """Renew the lease until the flight has a result. Stop sharing if the leader is blocked for too long."""
        loop = asyncio.get_running_loop()
        every_s = min(self._cache.lease_s / 5, self._max_blocked_s)
        while not self.result.done() and not stopping():
            await asyncio.sleep(every_s)
            if self._blocked_since is not None and loop.time() - self._blocked_since > self._max_blocked_s:
                await self.finish(UNSHARED)
                return
            with suppress(StoreError):
                await self._cache.renew_lease(self._key, self.token)


class Flights:
    """The flights of this process and, through Valkey, of all others.

    A leader whose own listener blocks it for `max_blocked_s` seconds stops sharing, so that others need not wait.
    """

    def __init__(self, cache: SpeechCache, *, max_blocked_s: float = _MAX_BLOCKED_S) -> None:
        self._cache = cache
        self._max_blocked_s = max_blocked_s
        self._by_key: dict[SpeechKey, Flight] = {}

    @asynccontextmanager
    async def join(self, key: SpeechKey) -> AsyncIterator[Flight | FlightResult]:
        """Lead the flight of `key` within the block, or wait for its leader and return the result.

        If the leader is in another process, one stream of this process polls for the result on behalf of all. While
        Valkey is unavailable, nothing is shared.
        """
        other = self._by_key.get(key)
        if other is not None and not other.result.done():
            await asyncio.wait([other.result])
            yield other.result.result()
            return
        flight = self._by_key[key] = Flight(key, self._cache, max_blocked_s=self._max_blocked_s)
        try:
            leader = await self._try_to_lead(key, flight)
            if leader is None:
                async with background(flight.keep_lease()):
                    yield flight
            else:
                result = leader if isinstance(leader, FlightResult) else await self._poll(key, leader)
                flight.result.set_result(result)
                yield result
        finally:
            if self._by_key.get(key) is flight:
                del self._by_key[key]
            await flight.finish(GONE)

    async def _try_to_lead(self, key: SpeechKey, flight: Flight) -> str | FlightResult | None:
        """Return `None` if this flight leads, the token of the current leader, or `UNSHARED` without Valkey."""
        try:
            return await self._cache.try_to_lead(key, flight.token)
        except StoreError:
            return UNSHARED

    async def _poll(self, key: SpeechKey, leader: str) -> FlightResult:
        while True:
            try:
                leads, message = await self._cache.read_flight(key, leader)
            except StoreError:
                return UNSHARED
            if message is not None:
                outcome, _, voice = message.partition(" ")
                return FlightResult(_OUTCOMES.get(outcome, "unshared"), voice)
            if not leads:
                return GONE
            await asyncio.sleep(_POLL_EVERY_S)
