"""Conversations against a server, and what they cost it: `python -m bench.load --help`.

Closed loop: so many streams at once, each followed by the next. Open loop: streams that arrive at a rate, whatever
the server makes of them; their latency counts from when they were due.
"""

import argparse
import asyncio
import os
import platform
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop
from aiohttp import ClientSession

from bench.client import Client, Stream
from bench.deployment import Deployment, lifted, login, spawned

_ASK_AGAIN_S = 0.1
_SETTLE_S = 1.5
_FULL = 0.9
_HEADINGS = (
    *("load", "streams", "failed", "streams/s", "events/s"),
    *("first event ms p50/p95/p99", "first text ms p50/p95/p99", "transit ms p50/p99"),
    *("server µs/event", "µs/stream", "CPU server/generator/fullest core", "limit"),
)


@dataclass(frozen=True)
class Cores:
    """Where the server runs, and where all the rest does: generator, upstream, stores."""

    server: set[int]
    others: set[int]

    @classmethod
    def parted(cls) -> "Cores":
        ours = os.sched_getaffinity(0)
        first = {min(ours)}
        return cls(first, ours - first or first)


@dataclass(frozen=True)
class Load:
    """`strategy` is a model of `bench.upstream`, or any strategy that the server has."""

    name: str
    strategy: str
    streams: int
    at_once: int = 0
    rate: float = 0
    """Streams per second, in place of `at_once`."""
    over_s: float = 0
    """Over which the first `at_once` begin."""


SCENARIOS = {
    "quick": (
        Load("20 ms paced, 100 at once", "50x20", 400, at_once=100, over_s=1),
        Load("20 ms paced, 40/s arrive", "50x20", 160, rate=40),
        Load("unpaced, 50 at once", "200x0", 600, at_once=50),
        Load("one delta, 50 at once", "1x0", 1500, at_once=50),
    ),
    "full": (
        Load("20 ms paced, 200 at once", "50x20", 2000, at_once=200, over_s=1),
        Load("20 ms paced, 1,000 at once", "50x20", 5000, at_once=1000, over_s=2),
        Load("20 ms paced, 80/s arrive", "50x20", 1600, rate=80),
        Load("unpaced, 500 at once", "200x0", 5000, at_once=500),
        Load("one delta, 200 at once", "1x0", 10_000, at_once=200),
    ),
}
WAITING = {"quick": 300, "full": 2000}
"""Streams that wait for a first token while the server's memory is read."""


class Reading:
    """Clocks and counters of this machine, at one moment."""

    def __init__(self, deployment: Deployment) -> None:
        self.at = time.monotonic()
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines()]
        self.cores = {
            int(line[0][3:]): [int(word) for word in line[1:9]] for line in lines if line[0][3:].isdecimal()
        }
        self.server_s, self.server_bytes = _spent(deployment.pid)
        self.generator_s = _spent(os.getpid())[0] + _spent(deployment.upstream_pid)[0]

    def busy(self, before: "Reading", cores: set[int]) -> float:
        """The share of the time since `before` that these cores were at work, for whomever."""
        spent = [[b - a for a, b in zip(before.cores[core], self.cores[core], strict=True)] for core in cores]
        return 1 - sum(core[3] + core[4] for core in spent) / max(1, sum(map(sum, spent)))


def _spent(pid: int | None) -> tuple[float, int]:
    """Seconds of CPU, and bytes of memory, of a process."""
    if pid is None:
        return 0, 0
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks, pages = int(stat[11]) + int(stat[12]), int(stat[21])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")


async def run(load: Load, client: Client) -> list[Stream]:
    """All streams of `load`, to their ends."""
    streams: list[Stream] = []
    left = iter(range(load.streams))

    async def one(due: float) -> None:
        streams.append(stream := Stream(due))
        await client.converse(stream)

    async def one_after_another(delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        for _ in left:
            await one(time.monotonic())

    async with asyncio.TaskGroup() as tasks:
        for place in range(load.at_once):
            tasks.create_task(one_after_another(load.over_s * place / load.at_once))
        if load.rate:
            due = time.monotonic()
            for _ in left:
                due += random.expovariate(load.rate)
                await asyncio.sleep(due - time.monotonic())
                tasks.create_task(one(due))
    return streams


def figures(load: Load, streams: Sequence[Stream], before: Reading, after: Reading, cores: Cores) -> list[str]:
    """What came of one load, under `_HEADINGS`."""
    good = [stream for stream in streams if not stream.fault]
    events, seconds, server_s = sum(s.events for s in good), after.at - before.at, after.server_s - before.server_s
    shares = {
        "server": server_s / seconds,
        "generator": (after.generator_s - before.generator_s) / seconds / len(cores.others),
        "machine": max(after.busy(before, cores.server), after.busy(before, cores.others)),
    }
    return [
        load.name,
        f"{len(streams):,}",
        f"{len(streams) - len(good):,}",
        f"{len(good) / seconds:,.0f}",
        f"{events / seconds:,.0f}",
        _percentiles([s.first_event - s.begun for s in good], 50, 95, 99),
        _percentiles([s.first_text - s.begun for s in good if s.first_text], 50, 95, 99),
        _percentiles([transit for s in good for transit in s.transits_s], 50, 99),
        f"{server_s * 1e6 / events:,.0f}" if events and server_s else "-",
        f"{server_s * 1e6 / len(good):,.0f}" if good and server_s else "-",
        " / ".join(f"{share:.0%}" for share in shares.values()),
        next((name for name, share in shares.items() if share > _FULL), "none"),
    ]


def _percentiles(seconds: list[float], *percents: int) -> str:
    ranked = sorted(seconds)
    return " / ".join(f"{ranked[(len(ranked) - 1) * p // 100] * 1000:,.1f}" for p in percents) if ranked else "-"


async def measured(load: Load, deployment: Deployment, cores: Cores) -> str:
    """Run `load` and print its row; what the first failure said."""
    client = Client(deployment.url, deployment.token, load.strategy)
    before = Reading(deployment)
    streams = await run(load, client)
    print(f"| {' | '.join(figures(load, streams, before, Reading(deployment), cores))} |", flush=True)
    client.close()
    return next((f"{load.name}: {stream.fault}" for stream in streams if stream.fault), "")


async def memory(count: int, deployment: Deployment) -> None:
    """Print what the server's memory grows by while `count` streams wait for a first token."""
    client = Client(deployment.url, deployment.token, "held")
    before = Reading(deployment).server_bytes
    streams = [Stream(time.monotonic()) for _ in range(count)]
    async with asyncio.TaskGroup() as tasks, ClientSession() as http:
        for stream in streams:
            tasks.create_task(client.converse(stream))
        while any(stream.events < 2 and not stream.fault for stream in streams):  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(_ASK_AGAIN_S)
        await asyncio.sleep(_SETTLE_S)
        grown = Reading(deployment).server_bytes - before
        await http.post(deployment.release_url)
    failed = sum(bool(stream.fault) for stream in streams)
    idle, each = f"{before / 2**20:,.0f} MiB idle", f"{grown / 1024 / count:,.1f} KiB"
    print(
        f"Memory: {idle}, and {each} for each of {count:,} streams that wait for a first token ({failed} failed)\n"
    )
    client.close()


async def measure(deployment: Deployment, cores: Cores, loads: Sequence[Load], *, waiting: int = 0) -> None:
    """Everything, as Markdown."""
    load_1, _, _ = os.getloadavg()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load average {load_1:.1f} before\n")
    async with lifted(deployment):
        if waiting:
            await run(
                Load("warm-up", "1x0", 200, at_once=10), client := Client(deployment.url, deployment.token, "1x0")
            )
            client.close()
            await memory(waiting, deployment)
        print(f"| {' | '.join(_HEADINGS)} |\n|{'---|' * len(_HEADINGS)}", flush=True)
        faults = [await measured(load, deployment, cores) for load in loads]
    for fault in filter(None, faults):
        print(f"\nA failure of {fault}")


def spawned_and_measured(scenario: str) -> None:
    """The stores' processes want asyncio's own loop: theirs lives to start and stop, the load has a fast one."""
    cores, loads = Cores.parted(), SCENARIOS[scenario]
    strategies = {"held", "1x0", *(load.strategy for load in loads)}
    with asyncio.Runner() as runner:
        context = spawned(strategies, server_cores=cores.server, other_cores=cores.others)
        deployment = runner.run(context.__aenter__())
        try:
            uvloop.run(measure(deployment, cores, loads, waiting=WAITING[scenario]))
        finally:
            runner.run(context.__aexit__(None, None, None))


async def elsewhere(args: argparse.Namespace) -> None:
    token = args.token or await login(args.url)
    deployment = Deployment(args.url.rstrip("/"), token, args.admin_token, args.pid)
    everywhere = os.sched_getaffinity(0)
    cores = Cores(os.sched_getaffinity(args.pid) if args.pid else everywhere, everywhere)
    load = Load(
        args.strategy, args.strategy, args.streams, at_once=0 if args.rate else args.at_once, rate=args.rate
    )
    await measure(deployment, cores, [load])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--spawn", action="store_true", help="measure a server of its own, by a scenario")
    where.add_argument("--url", help="measure the server that runs there, by one load")
    parser.add_argument("--scenario", choices=SCENARIOS, default="quick", help="with --spawn")
    one = parser.add_argument_group("with --url")
    one.add_argument("--token", default="", help="a session token (default: of a device that logs in)")
    one.add_argument("--admin-token", default="", help="lifts the limit of streams per user meanwhile")
    one.add_argument("--pid", type=int, help="of the server, where it runs on this machine")
    one.add_argument("--strategy", default="scripted-text")
    one.add_argument("--streams", type=int, default=100)
    one.add_argument("--at-once", type=int, default=4)
    one.add_argument("--rate", type=float, default=0, help="streams per second, in place of --at-once")
    args = parser.parse_args()
    if sys.platform != "linux":
        parser.error("it reads /proc and places processes on cores, as Linux has them")
    if args.spawn:
        spawned_and_measured(args.scenario)
    else:
        uvloop.run(elsewhere(args))
    return 0


if __name__ == "__main__":
    sys.exit(main())
