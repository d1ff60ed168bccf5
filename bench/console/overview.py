"""Measures what an open overview costs: an idle server, and the same load in turns without and with overviews."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from aiohttp import ClientSession

from bench.arrivals import run
from bench.deployment import Deployment
from bench.machine import Usage
from bench.scenarios import Load
from streams.tasks import background

TARGET = 0.01
"""Share of a core."""
MODEL = "50x20"
_WATCHERS = 20
"""So many overviews are open in a third round: each further one costs less than what the load varies by."""
_PATH = "/admin/api/overview/events"


@dataclass(slots=True)
class Cost:
    """The CPU time of the server in a second of load, in each round: without, with one and with all overviews."""

    rate: float
    for_s: float
    without: list[float] = field(default_factory=list)
    with_one: list[float] = field(default_factory=list)
    with_all: list[float] = field(default_factory=list)
    idle: list[tuple[float, float]] = field(default_factory=list)
    """The same of an idle server, without and with one overview, in which the load does not vary."""
    stores: list[tuple[float, float]] = field(default_factory=list)
    """The same of PostgreSQL and Valkey together."""
    events: int = 0
    """How many events the overviews have got."""
    failed: int = 0
    """Streams that have failed."""

    @property
    def shares(self) -> Sequence[float]:
        return [after - before for before, after in zip(self.without, self.with_one, strict=True)]

    @property
    def share(self) -> float:
        """What one overview costs, as a share of a core."""
        return fmean(self.shares)

    @property
    def error(self) -> float:
        """The standard error of `share`."""
        return stdev(self.shares) / len(self.shares) ** 0.5 if len(self.shares) > 1 else 0.0

    @property
    def idle_share(self) -> float:
        """What one overview costs an idle server, as a share of a core."""
        return fmean(after - before for before, after in self.idle)

    @property
    def further(self) -> float:
        """What each further overview costs. The first one pays for what all of them share."""
        return (fmean(self.with_all) - fmean(self.with_one)) / (_WATCHERS - 1)

    @property
    def met(self) -> bool:
        return max(self.share, self.idle_share) < TARGET and self.events > 0 and self.failed == 0

    def __str__(self) -> str:
        stores = fmean(after - before for before, after in self.stores)
        return (
            f"{len(self.shares)} times {self.for_s:.0f} s of {self.rate:g} streams a second, in turns without,"
            f" with one and with {_WATCHERS} open overviews: the server needs {fmean(self.without):.2%},"
            f" {fmean(self.with_one):.2%} and {fmean(self.with_all):.2%} of a core. So the first overview costs the"
            f" server {self.share:.2%} of a core (standard error {self.error:.2%}), and each further one"
            f" {self.further:.2%}; {_WATCHERS} of them cost the stores {stores:.2%}. An idle server, whose figures"
            f" vary less, needs {self.idle_share:.2%} of a core for one. Target: less than {TARGET:.0%} for one:"
            f" {'met' if self.met else 'missed'}."
        )


async def measure_overview(
    deployment: Deployment, http: ClientSession, *, rate: float, for_s: float, rounds: int
) -> Cost:
    """Run the load `3 * rounds` times. `http` is that of an operator."""
    cost = Cost(rate, for_s)
    load = load_of(rate, for_s)
    for _ in range(rounds):
        idle = await _idle(deployment, for_s)
        async with background(_watch_all(http, cost, 1)):
            cost.idle.append((idle, await _idle(deployment, for_s)))
    await run(load, deployment.target)
    for _ in range(rounds):
        before = await _round(deployment, load, cost)
        async with background(_watch_all(http, cost, 1)):
            one = await _round(deployment, load, cost)
        async with background(_watch_all(http, cost, _WATCHERS)):
            everyone = await _round(deployment, load, cost)
        cost.without.append(before[0])
        cost.with_one.append(one[0])
        cost.with_all.append(everyone[0])
        cost.stores.append((before[1], everyone[1]))
    return cost


def load_of(rate: float, for_s: float) -> Load:
    return Load(MODEL, [MODEL], for_s=for_s, rate=rate, arrivals="even", read_every=1000)


async def _round(deployment: Deployment, load: Load, cost: Cost) -> tuple[float, float]:
    """Return the CPU time of the server and of the stores in a second."""
    groups = (deployment.pids, deployment.store_pids)
    before = [Usage.of(pids).cpu_s for pids in groups]
    result = await run(load, deployment.target)
    server_s, stores_s = (Usage.of(pids).cpu_s - spent for pids, spent in zip(groups, before, strict=True))
    cost.failed += len(result.streams) - len(result.good)
    return server_s / result.seconds, stores_s / result.seconds


async def _idle(deployment: Deployment, for_s: float) -> float:
    """Return the CPU time of the server in a second without requests."""
    before, begun = Usage.of(deployment.pids).cpu_s, time.monotonic()
    await asyncio.sleep(for_s)
    return (Usage.of(deployment.pids).cpu_s - before) / (time.monotonic() - begun)


async def _watch_all(http: ClientSession, cost: Cost, count: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        for _ in range(count):
            tasks.create_task(_watch(http, cost))


async def _watch(http: ClientSession, cost: Cost) -> None:
    """Watch the overview as the console does: a response ends after a minute, and is requested again."""
    while True:
        async with http.get(_PATH, raise_for_status=True) as response:
            async for line in response.content:
                cost.events += line.startswith(b"data:")
