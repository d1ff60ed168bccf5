"""Compare Parley with a minimal relay, on the same machine in the same run: `python -m bench.versus [--full]`.

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
from bench.deployment import Deployment, DeploymentSpec, spawned
from bench.figures import HEADINGS, Figures, row, table
from bench.load import measure_load
from bench.machine import Cores, Usage, describe
from bench.profiling import Profile, profile_server
from bench.report import write_report
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
from streams.wire.codec import dumps

_POLL_S = 0.02
_SETTLE_S = 1.5
_ALL_WAIT_S = 300
_BATCH = 500
_WARM_UP = Load("warm-up", ["20x0"], streams=200, at_once=10)


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """The verdict on a row, over all its rounds."""

    load: str
    target: str
    ours: str
    baseline: str
    result: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The figures of a row. Each round has one set for Parley and one for the baseline."""

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


def compare(row: Row, deployment: Deployment, cores: Cores) -> Comparison:
    """Measure both targets one after the other in every round, in alternating order."""
    rounds = []
    for number in range(row.rounds):
        result = {
            baseline: measure_load(row.load, deployment, cores, baseline=baseline, deltas=row.deltas)
            for baseline in ((False, True) if number % 2 == 0 else (True, False))
        }
        rounds.append((result[False], result[True]))
    return Comparison(row, rounds)


async def waiting_streams(count: int, deployment: Deployment) -> Memory:
    """Measure by how much the server's memory grows while `count` streams wait for their first delta."""
    load = Load("waiting", ["held"], streams=count, at_once=count, read_every=count + 1)
    warm = await run(_WARM_UP, deployment.target)
    client = Client(deployment.target, load)
    before = Usage.of(deployment.pids).rss_bytes
    streams = [Stream(time.monotonic()) for _ in range(count)]

    async def until_begun(count: int) -> None:
        """Wait until `count` streams have sent their first two events, or have failed."""
        while client.events // 2 + sum(bool(stream.fault) for stream in streams) < count:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(_POLL_S)

    async with asyncio.TaskGroup() as tasks, ClientSession() as http:
        async with asyncio.timeout(_ALL_WAIT_S):
            for number, stream in enumerate(streams):
                if number % _BATCH == 0:  # No more streams than the listener's backlog may connect at once.
                    await until_begun(number - _BATCH)
                tasks.create_task(client.ask(stream))
            await until_begun(count)
        await asyncio.sleep(_SETTLE_S)
        grown = Usage.of(deployment.pids).rss_bytes - before
        (await http.post(deployment.release_url)).release()
    client.close()
    failed = sum(bool(stream.fault) for stream in [*streams, *warm.streams])
    return Memory(before, grown, count, failed)


def judge_row(comparison: Comparison) -> RowVerdict:
    """Judge a row by the medians over its rounds."""
    row = comparison.row
    if row.measure == "lateness":
        return _judge_lateness(comparison)
    costs = [(_cost(ours, row), _cost(baseline, row)) for ours, baseline in comparison.rounds]
    ratio = median(ours / baseline if baseline else 0 for ours, baseline in costs)
    failed = sum(ours.failed for ours, _ in comparison.rounds)
    met = 0 < ratio <= row.max_ratio and not (row.no_failure and failed)
    result = f"{ratio:.2f}" + (f", {failed} failed" if failed or row.no_failure else "")
    unit = "per delta" if row.measure == "delta" else "per conversation"
    return RowVerdict(
        row.load.name,
        f"CPU {unit} ≤ {row.max_ratio} of the baseline's" + (", no failure" if row.no_failure else ""),
        f"{median(ours for ours, _ in costs):,.1f} µs",
        f"{median(baseline for _, baseline in costs):,.1f} µs",
        result,
        "met" if met else "missed",
    )


def _cost(figures: Figures, row: Row) -> float:
    return figures.us_per_delta if row.measure == "delta" else figures.us_per_stream


def _judge_lateness(comparison: Comparison) -> RowVerdict:
    ours, baseline = (_first_output_ms([pair[index] for pair in comparison.rounds]) for index in (0, 1))
    later = [
        median(
            ours.first_output.at(percent) - baseline.first_output.at(percent)
            for ours, baseline in comparison.rounds
        )
        for percent in (50, 99)
    ]
    failed = sum(ours.failed for ours, _ in comparison.rounds)
    verdict = "met" if later[0] <= FIRST_P50_MS and later[1] <= FIRST_P99_MS and not failed else "missed"
    busiest = max(figures.generator_core_busy for pair in comparison.rounds for figures in pair)
    if busiest >= GENERATOR_FREE:
        verdict = f"inconclusive: the generator's core was {busiest:.0%} busy"
    return RowVerdict(
        comparison.row.load.name,
        f"first chunk ≤ {FIRST_P50_MS:.0f} ms later at p50, ≤ {FIRST_P99_MS:.0f} ms at p99",
        ours,
        baseline,
        f"{later[0]:+.2f} / {later[1]:+.2f} ms" + (f", {failed} failed" if failed else ""),
        verdict,
    )


def _first_output_ms(rounds: Sequence[Figures]) -> str:
    medians = (median(figures.first_output.at(percent) for figures in rounds) for percent in (50, 99))
    return " / ".join(f"{at:.2f}" for at in medians) + " ms"


def judge_memory(memory: Memory) -> RowVerdict:
    return RowVerdict(
        f"memory, {memory.streams:,} streams wait",
        f"≤ {MEMORY_KIB:.0f} KiB per stream above the idle server",
        f"{memory.empty_bytes / 2**20:,.0f} MiB idle",
        "-",
        f"{memory.each_kib:.1f} KiB" + (f", {memory.failed} failed" if memory.failed else ""),
        "met" if memory.each_kib <= MEMORY_KIB and not memory.failed else "missed",
    )


VERDICT_HEADINGS = ("row", "target", "Parley", "baseline", "result", "verdict")


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The results of a suite. `machine` describes the machine in one line."""

    machine: str
    memory: Memory
    rows: Sequence[Comparison]
    profile: Profile | None = None

    @property
    def verdicts(self) -> list[RowVerdict]:
        return [*map(judge_row, self.rows), judge_memory(self.memory)]

    def summary(self) -> str:
        """Return the verdicts on all rows as a Markdown table."""
        return table(VERDICT_HEADINGS, [list(asdict(verdict).values()) for verdict in self.verdicts])

    def details(self) -> str:
        """Return the figures of every run as a Markdown table."""
        return table(
            HEADINGS, [row(figures) for comparison in self.rows for pair in comparison.rounds for figures in pair]
        )


def measure(suite: Suite) -> SuiteResult:
    """Run the whole suite, and print the verdict on each row as soon as it is known."""
    cores = Cores.split()
    machine = describe(cores)
    print(machine, flush=True)
    spec = DeploymentSpec(suite.models, users=suite.users, baseline=True)
    with asyncio.Runner() as runner:
        context = spawned(spec, cores)
        deployment = runner.run(context.__aenter__())
        try:
            memory = uvloop.run(waiting_streams(suite.waiting, deployment))
            _progress(judge_memory(memory))
            rows = []
            for suite_row in suite.rows:
                rows.append(comparison := compare(suite_row, deployment, cores))
                _progress(judge_row(comparison))
        finally:
            runner.run(context.__aexit__(None, None, None))
    return SuiteResult(machine, memory, rows)


def _progress(row_verdict: RowVerdict) -> None:
    print(f"{row_verdict.load}: {row_verdict.result} ({row_verdict.verdict})", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.versus", description=__doc__)
    parser.add_argument("--full", action="store_true", help="run all rows at full length, and a profile")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the figures between the marks in FILE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    args = parser.parse_args(arguments)
    if sys.platform != "linux":
        parser.error("this tool needs Linux: it reads /proc and sets CPU affinities")
    prepare()
    ours = os.sched_getaffinity(0)
    result = measure(FULL if args.full else QUICK)
    os.sched_setaffinity(0, ours)
    if args.full:
        result = SuiteResult(result.machine, result.memory, result.rows, profile_server())
    print(f"\n{result.summary()}\n{result.details()}", end="")
    _print_failures(result)
    if result.profile is not None:
        print(f"\n{result.profile.table()}", end="")
    if args.json:
        args.json.write_bytes(dumps(asdict(result)))
    if args.report:
        write_report(args.report, result, command=f"python -m bench.versus {' '.join(arguments or sys.argv[1:])}")
    return 0


def _print_failures(result: SuiteResult) -> None:
    for comparison in result.rows:
        for pair in comparison.rounds:
            for figures in pair:
                for fault, count in {**figures.errors, **figures.faults}.items():
                    print(f"{figures.load}, {figures.target}: {count:,} times: {fault}")


if __name__ == "__main__":
    sys.exit(main())
