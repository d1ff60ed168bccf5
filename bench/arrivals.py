"""Run a load in a closed loop (a fixed number of streams at once) or an open loop (a rate of arrivals).

One process or several generate the load.
"""

import asyncio
import gc
import multiprocessing
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import uvloop

from bench.client import Client, Sample, Stream, Target
from bench.machine import Timeline, raise_descriptor_limit
from bench.scenarios import Load
from streams.tasks import background

_BEGIN_AFTER_S = 2.0
"""Time that several generator processes have to start before the load begins."""


@dataclass(slots=True)
class Result:
    """The outcome of a load. `begun` and `ended` are values of `time.monotonic()`."""

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
    """Run all streams of `load` to their ends.

    `pids` are the processes of the target; their CPU time is sampled meanwhile. With `begin_at`, a value of
    `time.monotonic()`, the load begins at that time.
    """
    client = Client(target, load)
    if begin_at:
        await asyncio.sleep(begin_at - time.monotonic())
    begun, timeline = time.monotonic(), Timeline()
    streams: list[Stream] = []
    async with background(timeline.watch(lambda: client.events, pids, begun=begun)):
        await (_open_loop(load, client, streams) if load.rate else _closed_loop(load, client, streams))
    result = Result(begun, time.monotonic(), streams, client.sample, timeline)
    client.close()
    return result


def _permits(load: Load) -> Iterator[None]:
    """Yield once for each stream that the load allows to begin."""
    until = time.monotonic() + load.for_s
    count = 0
    while (load.streams and count < load.streams) or (not load.streams and time.monotonic() < until):
        count += 1
        yield None


async def run_on_each(load: Load, targets: Sequence[Target], *, pids: tuple[int, ...] = ()) -> Result:
    """Run the same part of `load` on each of the targets at the same time, from this process."""
    parts = zip(load.parts(len(targets)), targets, strict=True)
    return _merge(await asyncio.gather(*(run(part, target, pids=pids) for part, target in parts)))


async def _closed_loop(load: Load, client: Client, streams: list[Stream]) -> None:
    permits = _permits(load)

    async def worker(delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        for _ in permits:
            streams.append(stream := Stream(time.monotonic()))
            await client.ask(stream)

    async with asyncio.TaskGroup() as tasks:
        for index in range(load.at_once):
            tasks.create_task(worker(load.over_s * index / load.at_once))


async def _open_loop(load: Load, client: Client, streams: list[Stream]) -> None:
    """Begin each stream when it is due, whether or not the earlier ones have ended."""
    due = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for _ in _permits(load):
            due += 1 / load.rate if load.arrivals == "even" else random.expovariate(load.rate)
            await asyncio.sleep(due - time.monotonic())
            streams.append(stream := Stream(due))
            tasks.create_task(client.ask(stream))


def run_by_several(load: Load, target: Target, processes: int, *, pids: tuple[int, ...] = ()) -> Result:
    """Run `load` from several processes that begin together. Only the first one samples the target's CPU."""
    begin_at = time.monotonic() + _BEGIN_AFTER_S
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        parts = [
            pool.submit(_generate, part, target, begin_at, pids if number == 0 else ())
            for number, part in enumerate(load.parts(processes))
        ]
        return _merge([part.result() for part in parts])


def _generate(load: Load, target: Target, begin_at: float, pids: tuple[int, ...]) -> Result:
    prepare()
    return uvloop.run(run(load, target, pids=pids, begin_at=begin_at))


def _merge(results: list[Result]) -> Result:
    """Merge the results of several generators. The merged timeline ends with the shortest one."""
    merged = Result(min(r.begun for r in results), max(r.ended for r in results), [], Sample())
    for result in results:
        merged.streams += result.streams
        merged.sample.read += result.sample.read
        merged.sample.gaps_s += result.sample.gaps_s
        merged.sample.transits_s += result.sample.transits_s
        merged.sample.names += result.sample.names
    lines = [result.timeline.points for result in results]
    merged.timeline.points = [
        (points[0][0], sum(point[1] for point in points), points[0][2], points[0][3])
        for points in zip(*lines, strict=False)
    ]
    return merged


def prepare() -> None:
    """Prepare this process to generate load: raise the descriptor limit and make garbage collections rare."""
    raise_descriptor_limit()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
