"""Measures what an open overview costs a loaded server: the same load in turns without and with overviews."""

import asyncio
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
"""So many overviews are open, because what one costs is less than what the load varies by."""
_PATH = "/admin/api/overview/events"


@dataclass(slots=True)
class Cost:
    """The CPU time of the server in a second of load, in each round: without and with open overviews."""

    rate: float
    for_s: float
    without: list[float] = field(default_factory=list)
    with_all: list[float] = field(default_factory=list)
    stores: list[tuple[float, float]] = field(default_factory=list)
    """The same of PostgreSQL and Valkey together."""
    events: int = 0
    """How many events the overviews have got."""
    failed: int = 0
    """Streams that have failed."""

    @property
    def shares(self) -> Sequence[float]:
        return [(after - before) / _WATCHERS for before, after in zip(self.without, self.with_all, strict=True)]

    @property
    def share(self) -> float:
        """What the overview costs, as a share of a core."""
        return fmean(self.shares)

    @property
    def error(self) -> float:
        """The standard error of `share`."""
        return stdev(self.shares) / len(self.shares) ** 0.5 if len(self.shares) > 1 else 0.0

    @property
    def met(self) -> bool:
        return self.share + self.error < TARGET and self.events > 0 and self.failed == 0

    def __str__(self) -> str:
        stores = fmean(after - before for before, after in self.stores)
        return (
            f"{len(self.shares)} times {self.for_s:.0f} s of {self.rate:g} streams a second, in turns without and"
            f" with {_WATCHERS} open overviews: the server needs {fmean(self.without):.1%} and"
            f" {fmean(self.with_all):.1%} of a core, and the stores {stores:.2%} more. So an overview costs the"
            f" server {self.share:.2%} of a core (standard error {self.error:.2%}). Target: less than {TARGET:.0%}:"
            f" {'met' if self.met else 'missed'}."
        )


async def measure_overview(
    deployment: Deployment, http: ClientSession, *, rate: float, for_s: float, rounds: int
) -> Cost:
    """Run the load `2 * rounds` times. `http` is that of an operator."""
    cost = Cost(rate, for_s)
    load = Load(MODEL, [MODEL], for_s=for_s, rate=rate, arrivals="even", read_every=1000)
    await run(load, deployment.target)
    for _ in range(rounds):
        before = await _round(deployment, load, cost)
        async with background(_watch_all(http, cost)):
            after = await _round(deployment, load, cost)
        cost.without.append(before[0])
        cost.with_all.append(after[0])
        cost.stores.append((before[1], after[1]))
    return cost


async def _round(deployment: Deployment, load: Load, cost: Cost) -> tuple[float, float]:
    """Return the CPU time of the server and of the stores in a second."""
    groups = (deployment.pids, deployment.store_pids)
    before = [Usage.of(pids).cpu_s for pids in groups]
    result = await run(load, deployment.target)
    server_s, stores_s = (Usage.of(pids).cpu_s - spent for pids, spent in zip(groups, before, strict=True))
    cost.failed += len(result.streams) - len(result.good)
    return server_s / result.seconds, stores_s / result.seconds


async def _watch_all(http: ClientSession, cost: Cost) -> None:
    async with asyncio.TaskGroup() as tasks:
        for _ in range(_WATCHERS):
            tasks.create_task(_watch(http, cost))


async def _watch(http: ClientSession, cost: Cost) -> None:
    """Watch the overview as the console does: a response ends after a minute, and is requested again."""
    while True:
        async with http.get(_PATH, raise_for_status=True) as response:
            async for line in response.content:
                cost.events += line.startswith(b"data:")
