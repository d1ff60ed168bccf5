"""Streams as they begin: one after another on so many places, or as they arrive; by one generator or several."""

import asyncio
import gc
import multiprocessing
import random
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import uvloop

from bench.client import Client, Sample, Stream, Target
from bench.machine import Timeline, raise_descriptor_limit
from bench.scenarios import Load
from streams.tasks import background

_BEGIN_AFTER_S = 2.0
"""How long several generators have to start before the load begins."""


@dataclass(slots=True)
class Result:
    """What came of a load. `begun` and `ended` are of `time.monotonic`."""

    begun: float
    ended: float
    streams: list[Stream]
    sample: Sample
    timeline: Timeline = field(default_factory=Timeline)

    @property
    def seconds(self) -> float:
        return self.ended - self.begun

    @property
    def good(self) -> list[Stream]:
        return [stream for stream in self.streams if not stream.fault and stream.outcome == "end"]


async def run(load: Load, target: Target, *, pids: tuple[int, ...] = (), begin_at: float = 0) -> Result:
    """All streams of `load`, to their ends. `pids`: the target's, whose CPU is watched meanwhile."""
    client = Client(target, load)
    if begin_at:
        await asyncio.sleep(begin_at - time.monotonic())
    begun, timeline = time.monotonic(), Timeline()
    streams: list[Stream] = []
    async with background(timeline.watch(lambda: client.events, pids, begun=begun)):
        await (_arriving(load, client, streams) if load.rate else _one_after_another(load, client, streams))
    result = Result(begun, time.monotonic(), streams, client.sample, timeline)
    client.close()
    return result


def _places(load: Load) -> Iterator[None]:
    """One for each stream that may begin."""
    until = time.monotonic() + load.for_s
    count = 0
    while (load.streams and count < load.streams) or (not load.streams and time.monotonic() < until):
        count += 1
        yield None


async def _one_after_another(load: Load, client: Client, streams: list[Stream]) -> None:
    left = _places(load)

    async def one_place(delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        for _ in left:
            streams.append(stream := Stream(time.monotonic()))
            await client.ask(stream)

    async with asyncio.TaskGroup() as tasks:
        for place in range(load.at_once):
            tasks.create_task(one_place(load.over_s * place / load.at_once))


async def _arriving(load: Load, client: Client, streams: list[Stream]) -> None:
    """Each begins when it is due, whatever became of those before it."""
    due = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for _ in _places(load):
            due += 1 / load.rate if load.arrivals == "even" else random.expovariate(load.rate)
            await asyncio.sleep(due - time.monotonic())
            streams.append(stream := Stream(due))
            tasks.create_task(client.ask(stream))


def run_by_several(load: Load, target: Target, processes: int, *, pids: tuple[int, ...] = ()) -> Result:
    """The same by several processes that begin together. Only the first watches the target."""
    begin_at = time.monotonic() + _BEGIN_AFTER_S
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        parts = [
            pool.submit(_generate, part, target, begin_at, pids if number == 0 else ())
            for number, part in enumerate(load.parts(processes))
        ]
        return _together([part.result() for part in parts])


def _generate(load: Load, target: Target, begin_at: float, pids: tuple[int, ...]) -> Result:
    prepare()
    return uvloop.run(run(load, target, pids=pids, begin_at=begin_at))


def _together(results: list[Result]) -> Result:
    """One result of several; events over time are those of all, where the parts last as long."""
    whole = Result(min(r.begun for r in results), max(r.ended for r in results), [], Sample())
    for result in results:
        whole.streams += result.streams
        whole.sample.read += result.sample.read
        whole.sample.gaps_s += result.sample.gaps_s
        whole.sample.transits_s += result.sample.transits_s
        whole.sample.names += result.sample.names
    lines = [result.timeline.points for result in results]
    whole.timeline.points = [
        (points[0][0], sum(point[1] for point in points), points[0][2], points[0][3])
        for points in zip(*lines, strict=False)
    ]
    return whole


def prepare() -> None:
    """Make this process a generator: sockets enough, and a collector that does not get in the way."""
    raise_descriptor_limit()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
