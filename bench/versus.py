"""Parley beside the barest relay, on the same machine in the same run: `python -m bench.versus [--full]`.

The target has the first core of this process; generator, vendor and stores have the rest.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import uvloop
from aiohttp import ClientSession

from bench.arrivals import prepare, run
from bench.client import Client, Stream
from bench.deployment import Deployment, Wanted, spawned
from bench.figures import HEADINGS, Figures, row, table
from bench.load import measured
from bench.machine import Cores, Spent, described
from bench.profiling import Profile, profiled
from bench.scenarios import Load
from bench.targets import (
    FIRST_P50_MS,
    FIRST_P99_MS,
    FULL,
    GENERATOR_FREE,
    MEMORY_KIB,
    QUICK,
    Row,
    Suite,
)
from bench.writing import write_report
from streams.wire.codec import dumps

_ASK_AGAIN_S = 0.02
_SETTLE_S = 1.5
_ALL_WAIT_S = 300
_TOGETHER = 500
_WARM_UP = Load("warm-up", ["20x0"], streams=200, at_once=10)


@dataclass(frozen=True, slots=True)
class Judged:
    """A row against its target, over all its rounds."""

    load: str
    target: str
    ours: str
    baseline: str
    found: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Compared:
    """`rounds`: Parley and baseline, each in turn."""

    row: Row
    rounds: Sequence[tuple[Figures, Figures]]


@dataclass(frozen=True, slots=True)
class Memory:
    empty_bytes: int
    grown_bytes: int
    streams: int
    failed: int

    @property
    def each_kib(self) -> float:
        return self.grown_bytes / 1024 / max(1, self.streams)


def compared(row: Row, deployment: Deployment, cores: Cores) -> Compared:
    """Every round asks both, one after the other; who is first changes."""
    rounds = []
    for number in range(row.rounds):
        found = {
            baseline: measured(row.load, deployment, cores, baseline=baseline, deltas=row.deltas)
            for baseline in ((False, True) if number % 2 == 0 else (True, False))
        }
        rounds.append((found[False], found[True]))
    return Compared(row, rounds)


async def waiting_streams(count: int, deployment: Deployment) -> Memory:
    """What the server's memory grows by while so many streams wait for their first delta."""
    load = Load("waiting", ["held"], streams=count, at_once=count, read_every=count + 1)
    warm = await run(_WARM_UP, deployment.target)
    client = Client(deployment.target, load)
    before = Spent.of(deployment.pids).rss_bytes
    streams = [Stream(time.monotonic()) for _ in range(count)]

    async def begun(count: int) -> None:
        """Wait until so many have said that they begin, or failed."""
        while client.events // 2 + sum(bool(stream.fault) for stream in streams) < count:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(_ASK_AGAIN_S)

    async with asyncio.TaskGroup() as tasks, ClientSession() as http:
        async with asyncio.timeout(_ALL_WAIT_S):
            for number, stream in enumerate(streams):
                if number % _TOGETHER == 0:  # more than a listener's backlog must not connect at once
                    await begun(number - _TOGETHER)
                tasks.create_task(client.ask(stream))
            await begun(count)
        await asyncio.sleep(_SETTLE_S)
        grown = Spent.of(deployment.pids).rss_bytes - before
        (await http.post(deployment.release_url)).release()
    client.close()
    failed = sum(bool(stream.fault) for stream in [*streams, *warm.streams])
    return Memory(before, grown, count, failed)


def judged(found: Compared) -> Judged:
    """What is told of a row: medians over its rounds."""
    row = found.row
    if row.measure == "lateness":
        return _judged_lateness(found)
    costs = [(_cost(ours, row), _cost(bare, row)) for ours, bare in found.rounds]
    ratio = median(ours / bare if bare else 0 for ours, bare in costs)
    failed = sum(ours.failed for ours, _ in found.rounds)
    met = 0 < ratio <= row.most and not (row.no_failure and failed)
    told = f"{ratio:.2f}" + (f", {failed} failed" if failed or row.no_failure else "")
    what = "per delta" if row.measure == "delta" else "per conversation"
    return Judged(
        row.load.name,
        f"CPU {what} ≤ {row.most} of the baseline's" + (", no failure" if row.no_failure else ""),
        f"{median(ours for ours, _ in costs):,.1f} µs",
        f"{median(bare for _, bare in costs):,.1f} µs",
        told,
        "met" if met else "missed",
    )


def _cost(found: Figures, row: Row) -> float:
    return found.us_per_delta if row.measure == "delta" else found.us_per_stream


def _judged_lateness(found: Compared) -> Judged:
    ours, bare = (_first_output_ms([both[who] for both in found.rounds]) for who in (0, 1))
    later = [
        median(ours.first_output.at(percent) - bare.first_output.at(percent) for ours, bare in found.rounds)
        for percent in (50, 99)
    ]
    failed = sum(ours.failed for ours, _ in found.rounds)
    verdict = "met" if later[0] <= FIRST_P50_MS and later[1] <= FIRST_P99_MS and not failed else "missed"
    busiest = max(figures.generator_core_busy for both in found.rounds for figures in both)
    if busiest >= GENERATOR_FREE:
        verdict = f"does not count: the generator's core was {busiest:.0%} busy"
    return Judged(
        found.row.load.name,
        f"first chunk ≤ {FIRST_P50_MS:.0f} ms later at p50, ≤ {FIRST_P99_MS:.0f} ms at p99",
        ours,
        bare,
        f"{later[0]:+.2f} / {later[1]:+.2f} ms" + (f", {failed} failed" if failed else ""),
        verdict,
    )


def _first_output_ms(rounds: Sequence[Figures]) -> str:
    medians = (median(one.first_output.at(percent) for one in rounds) for percent in (50, 99))
    return " / ".join(f"{at:.2f}" for at in medians) + " ms"


def judged_memory(memory: Memory) -> Judged:
    return Judged(
        f"memory, {memory.streams:,} wait",
        f"≤ {MEMORY_KIB:.0f} KiB each over the empty server",
        f"{memory.empty_bytes / 2**20:,.0f} MiB empty",
        "-",
        f"{memory.each_kib:.1f} KiB" + (f", {memory.failed} failed" if memory.failed else ""),
        "met" if memory.each_kib <= MEMORY_KIB and not memory.failed else "missed",
    )


JUDGED_HEADINGS = ("row", "to reach", "Parley", "baseline", "found", "verdict")


@dataclass(frozen=True, slots=True)
class Measured:
    """All of a suite. `machine`: one line about where."""

    machine: str
    memory: Memory
    rows: Sequence[Compared]
    profile: Profile | None = None

    @property
    def judged(self) -> list[Judged]:
        return [*map(judged, self.rows), judged_memory(self.memory)]

    def summary(self) -> str:
        """The rows against their targets, as Markdown."""
        return table(JUDGED_HEADINGS, [list(asdict(one).values()) for one in self.judged])

    def details(self) -> str:
        """Every run of every row, as Markdown."""
        return table(HEADINGS, [row(one) for found in self.rows for both in found.rounds for one in both])


def measure(suite: Suite) -> Measured:
    """Run the whole suite, and tell each row as it is done."""
    cores = Cores.parted()
    machine = described(cores)
    print(machine, flush=True)
    wanted = Wanted(suite.models, users=suite.users, baseline=True)
    with asyncio.Runner() as runner:
        context = spawned(wanted, cores)
        deployment = runner.run(context.__aenter__())
        try:
            memory = uvloop.run(waiting_streams(suite.waiting, deployment))
            _progress(judged_memory(memory))
            rows = []
            for wanted_row in suite.rows:
                rows.append(found := compared(wanted_row, deployment, cores))
                _progress(judged(found))
        finally:
            runner.run(context.__aexit__(None, None, None))
    return Measured(machine, memory, rows)


def _progress(one: Judged) -> None:
    print(f"{one.load}: {one.found} ({one.verdict})", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.versus", description=__doc__)
    parser.add_argument("--full", action="store_true", help="all rows, in the numbers that count, and a profile")
    parser.add_argument("--report", type=Path, metavar="FILE", help="put the figures there, between its marks")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    args = parser.parse_args(arguments)
    if sys.platform != "linux":
        parser.error("it reads /proc and places processes on cores, as Linux has them")
    prepare()
    ours = os.sched_getaffinity(0)
    found = measure(FULL if args.full else QUICK)
    os.sched_setaffinity(0, ours)
    if args.full:
        found = Measured(found.machine, found.memory, found.rows, profiled())
    print(f"\n{found.summary()}\n{found.details()}", end="")
    _tell_failures(found)
    if found.profile is not None:
        print(f"\n{found.profile.table()}", end="")
    if args.json:
        args.json.write_bytes(dumps(asdict(found)))
    if args.report:
        write_report(args.report, found, command=f"python -m bench.versus {' '.join(arguments or sys.argv[1:])}")
    return 0


def _tell_failures(found: Measured) -> None:
    for row_ in found.rows:
        for both in row_.rounds:
            for one in both:
                for fault, count in {**one.errors, **one.faults}.items():
                    print(f"{one.load}, {one.target}: {count:,} of: {fault}")


if __name__ == "__main__":
    sys.exit(main())
