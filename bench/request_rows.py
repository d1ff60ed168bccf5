"""Requests that are measured: one after the other as fast as the server responds, or at a steady rate."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench import figures
from bench.client import Target
from bench.figures import Spread
from bench.keep_alive import KeepAlive
from bench.machine import Usage

Next = Callable[[], bytes]
"""Returns the bytes of the next request."""


@dataclass(slots=True)
class Row:
    """A measurement and its target: requests per second, or the 99th percentile in milliseconds."""

    name: str
    per_s: float | None = None
    p99_ms: float | None = None
    took_s: float = 0
    cpu_s: float = 0
    statuses: Counter[int] = field(default_factory=Counter)
    times_s: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.statuses[200] / max(self.took_s, 1e-9)

    @property
    def failed(self) -> int:
        return self.statuses.total() - self.statuses[200]

    @property
    def met(self) -> bool:
        fast = self.per_s is None or self.rate >= self.per_s
        return fast and self.failed == 0 and (self.p99_ms is None or Spread.of(self.times_s).at(99) <= self.p99_ms)

    def cells(self) -> list[str]:
        target = "-"
        if self.per_s is not None:
            target = f"≥ {self.per_s:,.0f}/s"
        elif self.p99_ms is not None:
            target = f"p99 ≤ {self.p99_ms:g} ms"
        cost = "-" if self.p99_ms is not None else f"{self.cpu_s / max(1, self.statuses[200]) * 1e6:,.0f}"
        share = f"{self.cpu_s / self.took_s:.0%}"
        verdict = "-" if target == "-" else "met" if self.met else "missed"
        times = str(Spread.of(self.times_s))
        return [self.name, target, f"{self.rate:,.0f}", cost, share, times, str(self.failed), verdict]


async def repeat(
    row: Row,
    target: Target,
    next_request: Next,
    *,
    clients: int,
    pids: Sequence[int],
    requests: int = 0,
    for_s: float = float("inf"),
) -> None:
    """Have each client send one request after the other, for `for_s` seconds or until `requests` are answered."""
    connections = [await KeepAlive.open(target.url) for _ in range(clients)]
    begun, cpu_s = time.perf_counter(), Usage.of(pids).cpu_s

    async def ask(connection: KeepAlive) -> None:
        while (now := time.perf_counter()) < begun + for_s and (not requests or row.statuses.total() < requests):
            row.statuses[await connection.ask(next_request())] += 1
            row.times_s.append(time.perf_counter() - now)

    await asyncio.gather(*map(ask, connections))
    row.took_s, row.cpu_s = time.perf_counter() - begun, Usage.of(pids).cpu_s - cpu_s
    for connection in connections:
        connection.close()


async def paced(
    row: Row, target: Target, next_request: Next, *, pids: Sequence[int], for_s: float, every_s: float
) -> None:
    """Send a request every `every_s` seconds. The time of a request counts from the moment at which it is due."""
    free = [await KeepAlive.open(target.url) for _ in range(64)]
    begun, cpu_s = time.perf_counter(), Usage.of(pids).cpu_s

    async def ask(due: float) -> None:
        connection = free.pop()
        row.statuses[await connection.ask(next_request())] += 1
        row.times_s.append(time.perf_counter() - due)
        free.append(connection)

    async with asyncio.TaskGroup() as tasks:
        for number in range(int(for_s / every_s)):
            due = begun + number * every_s
            await asyncio.sleep(due - time.perf_counter())
            tasks.create_task(ask(due))
    row.took_s, row.cpu_s = time.perf_counter() - begun, Usage.of(pids).cpu_s - cpu_s
    for connection in free:
        connection.close()


def table(rows: Sequence[Row]) -> str:
    header = ("row", "target", "requests/s", "CPU µs/request", "CPU", "ms p50/p95/p99/max", "failed", "verdict")
    return figures.table(header, [row.cells() for row in rows])
