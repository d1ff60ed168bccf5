"""Measures one kind of call after the other: counters before and after, minus what happens without calls."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.operations.kinds import Ask, Kind
from bench.operations.streams import AT_ONCE, CONVERSATION, TEXT, parameters
from bench.operations.testbed import DURABLE, OperationsTestbed
from bench.store_counters import COMMAND, Reading, difference
from deploy.running import Failed

_JOBS_S = 300
_LATE = 0.8
"""The memory of running streams is read after this part of their time."""
_DUE_JOBS = """
select count(*) from procrastinate_jobs where status = 'doing'
    or (status = 'todo' and coalesce(scheduled_at, now()) <= now())
"""


@dataclass(frozen=True, slots=True)
class Pauses:
    """`idle_s`: the time in which the background work is measured. `settle_s`: the pause after each kind."""

    idle_s: float
    settle_s: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What one call of a kind costs, by counter. `size`: the bytes that the client received in a stream."""

    name: str
    calls: int
    seconds: float
    size: float
    costs: Mapping[str, float]

    @property
    def commands(self) -> Mapping[str, float]:
        """The commands of Valkey, the most frequent ones first."""
        found = {
            name.removeprefix(COMMAND): value for name, value in self.costs.items() if name.startswith(COMMAND)
        }
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @property
    def operations(self) -> float:
        return sum(self.commands.values())


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes in Valkey for each stream: while it runs, and a moment after its end."""

    name: str
    running: float
    ended: float


async def measure_background(testbed: OperationsTestbed, pauses: Pauses) -> Reading:
    """Return how much each counter grows in a second without calls."""
    await asyncio.sleep(pauses.settle_s)
    before, begun = await testbed.read(), time.monotonic()
    await asyncio.sleep(pauses.idle_s)
    grown, took_s = difference(before, await testbed.read()), time.monotonic() - begun
    return {name: value / took_s for name, value in grown.items()}


async def measure(
    testbed: OperationsTestbed, kind: Kind, background: Reading, pauses: Pauses, *, calls: int
) -> Cost:
    """Make calls of a kind, and wait until what they have caused is done and reported."""
    calls = max(kind.at_once, round(calls * kind.share))
    ask = await kind.prepare(testbed, calls)
    await _settle(testbed, pauses)
    before, begun = await testbed.read(), time.monotonic()
    size = await _ask_all(ask, calls, kind.at_once)
    took_s = time.monotonic() - begun
    await _settle(testbed, pauses)
    grown, passed_s = difference(before, await testbed.read()), time.monotonic() - begun
    costs = {name: (value - background.get(name, 0.0) * passed_s) / calls for name, value in grown.items()}
    return Cost(kind.name, calls, took_s, size / calls, costs)


async def _ask_all(ask: Ask, calls: int, at_once: int) -> int:
    async def call(first: int) -> int:
        return sum([await ask(number) for number in range(first, calls, at_once)])

    return sum(await asyncio.gather(*map(call, range(at_once))))


async def _settle(testbed: OperationsTestbed, pauses: Pauses) -> None:
    try:
        await testbed.counters.wait_for_jobs(_DUE_JOBS, within_s=_JOBS_S)
    except TimeoutError:
        raise Failed(f"jobs are still due after {_JOBS_S} s") from None
    await asyncio.sleep(pauses.settle_s)


async def measure_memory(testbed: OperationsTestbed, pauses: Pauses, *, stream_s: float) -> Sequence[Memory]:
    """Return the memory of streams that run at the same time. `stream_s`: how long they take."""
    return [
        await _memory(testbed, name, strategy, pauses, stream_s=stream_s)
        for name, strategy in (("turn", testbed.model), ("turn, `durable`", DURABLE))
    ]


async def _memory(
    testbed: OperationsTestbed, name: str, strategy: str, pauses: Pauses, *, stream_s: float
) -> Memory:
    before = await testbed.counters.used_memory()

    async def read_late() -> float:
        await asyncio.sleep(stream_s * _LATE)
        return await testbed.counters.used_memory()

    streams = (
        testbed.stream(user, CONVERSATION, parameters(strategy), text=TEXT) for user in testbed.users[:AT_ONCE]
    )
    running, *_ = await asyncio.gather(read_late(), *streams)
    await asyncio.sleep(pauses.settle_s)
    ended = await testbed.counters.used_memory()
    return Memory(name, (running - before) / AT_ONCE, (ended - before) / AT_ONCE)
