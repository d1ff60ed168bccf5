"""Speech that many want at the same time is made once: one leads, the others wait for how that ends."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

from storage.speech_cache import SpeechCache, SpeechKey
from streams.tasks import background, stopping
from streams.wire.errors import StoreError
from streams.wire.ids import new_id

_LOOK_EVERY_S = 0.05
_HELD_UP_S = 5.0

How = Literal["stored", "failed", "unshared", "gone"]
_TOLD: dict[str, How] = {"stored": "stored", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class Landing:
    """How a flight ended. `voice`, where it was stored, is the one that spoke in the end.

    `unshared`: well, or it goes on, and there is nothing for others. `gone`: its leader was cancelled or died.
    """

    how: How
    voice: str = ""


FAILED = Landing("failed")
UNSHARED = Landing("unshared")
GONE = Landing("gone")


class Flight:
    """A synthesis that others may wait for, as its leader holds it."""

    def __init__(self, key: SpeechKey, cache: SpeechCache, *, held_up_s: float) -> None:
        self.token = new_id()
        self.landed: asyncio.Future[Landing] = asyncio.get_running_loop().create_future()
        self._key = key
        self._cache = cache
        self._held_up_s = held_up_s
        self._held_up_since: float | None = None

    async def land(self, landing: Landing) -> None:
        """Tell those who wait, once: what is told later is not heard."""
        if self.landed.done():
            return
        self.landed.set_result(landing)
        told = "" if landing is GONE else f"{landing.how} {landing.voice}"
        with suppress(StoreError):  # they find out when the lease is over
            await self._cache.land(self._key, self.token, told)

    @contextmanager
    def held_up(self) -> Iterator[None]:
        """While the block lasts the leader waits for its own listener."""
        self._held_up_since = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self._held_up_since = None

    async def hold(self) -> None:
        """Stay the leader until it has landed."""
        loop = asyncio.get_running_loop()
        every_s = min(self._cache.lease_s / 5, self._held_up_s)
        while not self.landed.done() and not stopping():
            await asyncio.sleep(every_s)
            if self._held_up_since is not None and loop.time() - self._held_up_since > self._held_up_s:
                await self.land(UNSHARED)
                return
            with suppress(StoreError):
                await self._cache.hold(self._key, self.token)


class Flights:
    """Those of this process, and through the cache those of the others.

    A leader that its own listener holds up for `held_up_s` holds up nobody else.
    """

    def __init__(self, cache: SpeechCache, *, held_up_s: float = _HELD_UP_S) -> None:
        self._cache = cache
        self._held_up_s = held_up_s
        self._here: dict[SpeechKey, Flight] = {}

    @asynccontextmanager
    async def join(self, key: SpeechKey) -> AsyncIterator[Flight | Landing]:
        """A flight to lead for as long as the block lasts; or, where another led it, how that ended.

        One of each process watches what another process leads. Where Valkey is away nothing is shared.
        """
        other = self._here.get(key)
        if other is not None and not other.landed.done():
            await asyncio.wait([other.landed])
            yield other.landed.result()
            return
        flight = self._here[key] = Flight(key, self._cache, held_up_s=self._held_up_s)
        try:
            leader = await self._taken(key, flight)
            if leader is None:
                async with background(flight.hold()):
                    yield flight
            else:
                landing = leader if isinstance(leader, Landing) else await self._watched(key, leader)
                flight.landed.set_result(landing)
                yield landing
        finally:
            if self._here.get(key) is flight:
                del self._here[key]
            await flight.land(GONE)

    async def _taken(self, key: SpeechKey, flight: Flight) -> str | Landing | None:
        try:
            return await self._cache.take(key, flight.token)
        except StoreError:
            return UNSHARED

    async def _watched(self, key: SpeechKey, leader: str) -> Landing:
        while True:
            try:
                leads, told = await self._cache.look(key, leader)
            except StoreError:
                return UNSHARED
            if told is not None:
                how, _, voice = told.partition(" ")
                return Landing(_TOLD.get(how, "unshared"), voice)
            if not leads:
                return GONE
            await asyncio.sleep(_LOOK_EVERY_S)
