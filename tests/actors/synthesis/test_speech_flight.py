"""One stream leads a synthesis and the others wait for it, within a process and across two."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from uuid import uuid4

import pytest

from actors.synthesis.flight import FAILED, GONE, UNSHARED, Flight, FlightResult, Flights
from storage.conversations.speech_cache import SpeechCache, SpeechKey
from storage.valkey.opening import open_valkey
from streams.tasks import background
from tests.running.servers import Stores
from tests.waiting import until

KEY = SpeechKey("default", "0" * 64, "voice")
STORED = FlightResult("stored", "another")

POLLS = 3
"""After this many polls, a waiting stream has seen what there was to see."""

Process = Callable[..., "ObservedFlights"]


class ObservedCache(SpeechCache):
    """Counts how often leases were renewed, and how often those of other processes were read."""

    polls = renewals = 0

    async def read_flight(self, key: SpeechKey, token: str) -> tuple[bool, str | None]:
        found = await super().read_flight(key, token)
        self.polls += 1
        return found

    async def renew_lease(self, key: SpeechKey, token: str) -> None:
        await super().renew_lease(key, token)
        self.renewals += 1


class ObservedFlights(Flights):
    """The flights of a process, with its cache."""

    def __init__(self, cache: ObservedCache, **options: float) -> None:
        super().__init__(cache, **options)
        self.cache = cache

    async def until_polled(self) -> None:
        """Wait until a stream of this process waits for a leader in another one."""
        await until(lambda: self.cache.polls >= POLLS)


@pytest.fixture
async def process(stores: Stores) -> AsyncIterator[Process]:
    """Makes the flights of one more process on the same Valkey."""
    async with open_valkey(stores.redis_url, prefix=f"test-{uuid4().hex}:") as valkey:

        def make(*, lease_s: float = 10, **options: float) -> ObservedFlights:
            return ObservedFlights(ObservedCache(valkey, lease_s=lease_s), **options)

        yield make


async def waited(flights: Flights) -> FlightResult | None:
    """Return the result of a flight that another stream leads, or None if this one leads."""
    async with flights.join(KEY) as joined:
        return joined if isinstance(joined, FlightResult) else None


@pytest.mark.parametrize("result", [STORED, FAILED, UNSHARED])
async def test_all_waiting_streams_get_the_result_in_every_process(process: Process, result: FlightResult) -> None:
    here, there = process(), process()
    async with here.join(KEY) as flight:
        assert isinstance(flight, Flight)
        async with AsyncExitStack() as stack:
            waiting = [
                await stack.enter_async_context(background(waited(flights))) for flights in (here, there, there)
            ]
            await there.until_polled()
            assert not any(one.done() for one in waiting)
            await flight.finish(result)
            await flight.finish(FAILED)  # This result is ignored, because the flight has one already.
            assert [await one for one in waiting] == [result] * 3
        assert await waited(here) is None  # The flight is no longer led, so the next stream leads it.


async def test_one_waiting_stream_leads_if_the_leader_is_cancelled(process: Process) -> None:
    here, there = process(), process()
    leading: asyncio.Queue[None] = asyncio.Queue()

    async def lead(flights: Flights) -> FlightResult:
        while True:
            async with flights.join(KEY) as joined:
                if isinstance(joined, Flight):
                    leading.put_nowait(None)
                    await asyncio.Event().wait()
                elif joined is not GONE:
                    return joined

    async with AsyncExitStack() as stack:
        for flights in (here, here, there, there):
            await stack.enter_async_context(background(lead(flights)))
        await leading.get()
        await until(lambda: here.cache.polls + there.cache.polls >= POLLS)  # Only one of them leads.
        assert leading.empty()
    async with here.join(KEY) as joined:
        assert isinstance(joined, Flight)


async def test_a_leader_that_leaves_without_a_result_is_gone(process: Process) -> None:
    here, there = process(), process()
    async with AsyncExitStack() as stack:
        async with here.join(KEY):
            waiting = [await stack.enter_async_context(background(waited(flights))) for flights in (here, there)]
            await there.until_polled()
            assert not any(one.done() for one in waiting)
        assert [await one for one in waiting] == [GONE, GONE]


async def test_a_leader_keeps_its_lease_while_it_works(process: Process) -> None:
    here, there = process(lease_s=1), process(lease_s=1)
    async with here.join(KEY) as flight, background(waited(there)) as waiting:
        assert isinstance(flight, Flight)
        await until(lambda: here.cache.renewals > 5)  # It is renewed five times within its duration.
        polls = there.cache.polls
        await until(lambda: there.cache.polls > polls + 1)
        assert not waiting.done()
        await flight.finish(STORED)
        assert await waiting == STORED


async def test_leases_of_dead_processes_expire(stores: Stores) -> None:
    prefix = f"test-{uuid4().hex}:"
    async with open_valkey(stores.redis_url, prefix=prefix) as valkey:
        cache = SpeechCache(valkey, lease_s=1)
        assert await cache.try_to_lead(KEY, "dead") is None
        assert await waited(Flights(cache)) is GONE
        assert await waited(Flights(cache)) is None


async def test_a_blocked_leader_does_not_delay_other_streams(process: Process) -> None:
    here, there = process(max_blocked_s=0.05), process()
    async with here.join(KEY) as flight, background(waited(there)) as waiting:
        assert isinstance(flight, Flight)
        with flight.blocked():
            async with asyncio.timeout(5):
                assert await waiting == UNSHARED
