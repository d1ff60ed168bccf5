"""Measure logins and reads of users: how many a server process answers in a second, and what each costs it.

`python -m bench.accounts` starts a server that has the first core for itself. Clients send the next request as soon
as they have the response to the last one, except in the last row: there, reads arrive at a steady rate while other
clients log in by password as fast as the server allows. The row of the baseline, aiohttp with a constant response,
shows how fast the machine is.
"""

import argparse
import asyncio
import os
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import uvloop

from bench.arrivals import prepare
from bench.client import Target
from bench.deployment import Deployment, DeploymentSpec, spawned
from bench.figures import Spread, table
from bench.generated_section import write_between
from bench.keep_alive import KeepAlive, request
from bench.machine import Cores, Usage, describe, raise_priority
from bench.scenarios import seconds
from deploy.running import Failed
from streams.tasks import background

MARKS = ("<!-- accounts: written by bench.accounts -->", "<!-- /accounts -->")
_LOGIN = "/bp/user/login"
_DEVICES = 500
"""How many devices log in again. Each soon has as many sessions as a user may have, so every login ends one."""
_WARM_UP = 4 * _DEVICES
_EVERY_S = 0.005
"""The time between two reads while others log in by password."""
_PASSWORD_CLIENTS = 60
_NAME = {"name": "storm", "password": "correct horse battery"}

Next = Callable[[], bytes]
"""Returns the bytes of the next request."""


@dataclass(slots=True)
class Row:
    """What was measured, and what it should be: requests in a second, or milliseconds of the 99th percentile."""

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


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    prepare()
    cores = Cores.split()
    spec = DeploymentSpec(frozenset(), users=_DEVICES, baseline=True, profile=args.profile)
    try:
        with asyncio.Runner() as runner:  # asyncio's own event loop starts and stops the stores.
            context = spawned(spec, cores)
            deployment = runner.run(context.__aenter__())
            try:
                for pid in (*deployment.pids, *deployment.baseline_pids, *deployment.store_pids):
                    raise_priority(pid)  # If root runs this, other processes of the machine disturb it less.
                with ThreadPoolExecutor(1) as thread:
                    measured = thread.submit(uvloop.run, _measure(deployment, args))
                    rows = measured.result()
            finally:
                runner.run(context.__aexit__(None, None, None))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    report = f"{describe(cores)}\n\n{_table(rows)}\n"
    print(report, end="")
    if args.report:
        write_between(args.report, MARKS, f"\n{report}\n")
    return int(not all(row.met for row in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.accounts", description=__doc__)
    parser.add_argument("--clients", type=int, default=16, metavar="N", help="at once (default: %(default)s)")
    parser.add_argument("--for", dest="for_s", type=seconds, default=10, metavar="TIME", help="(default: 10 s)")
    parser.add_argument("--only", metavar="WORD", default="", help="measure only the rows whose name contains it")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the table between the marks in FILE")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="write a profile of the server, by cProfile")
    return parser


async def _measure(deployment: Deployment, args: argparse.Namespace) -> list[Row]:
    target, pids = deployment.target, deployment.pids
    known = [_device(target) for _ in range(_DEVICES)]
    tokens = [request(target, "GET", "/bp/user/me", token=token) for token in target.tokens]
    again, me = cycle(known).__next__, cycle(tokens).__next__
    rows: list[tuple[Row, Next, int]] = [
        (Row("login of a new device", per_s=1_500), lambda: _device(target), 200),
        (Row("login of a known device", per_s=2_000), again, _WARM_UP * 3),
        (Row("`GET /bp/user/me`", per_s=4_500), me, _WARM_UP),
    ]
    measured = []
    for row, following, warm_up in rows:
        if args.only in row.name:
            await _repeat(Row(""), target, following, clients=args.clients, pids=pids, requests=warm_up)
            _toggle(pids, args.profile)
            await _repeat(row, target, following, clients=args.clients, pids=pids, for_s=args.for_s)
            _toggle(pids, args.profile)
            measured.append(row)
    row = Row("`GET /bp/user/me` of the baseline")
    if args.only in row.name:
        assert deployment.baseline is not None, "the deployment has a baseline"
        await _repeat(
            row, deployment.baseline, me, clients=args.clients, pids=deployment.baseline_pids, for_s=args.for_s
        )
        measured.append(row)
    row = Row("`GET /bp/user/me` during logins by password", p99_ms=20)
    if args.only in row.name:
        await _during_logins(row, target, me, pids=pids, for_s=args.for_s)
        measured.append(row)
    return measured


def _toggle(pids: Sequence[int], profile: Path | None) -> None:
    if profile is not None:
        os.kill(pids[0], signal.SIGUSR2)


def _device(target: Target) -> bytes:
    return request(target, "POST", _LOGIN, {"device": {"id": secrets.token_hex(16)}, "platform": "ios"})


async def _repeat(
    row: Row,
    target: Target,
    following: Next,
    *,
    clients: int,
    pids: Sequence[int],
    requests: int = 0,
    for_s: float = float("inf"),
) -> None:
    """Let clients send one request after the other, for a time or until their number is reached."""
    connections = [await KeepAlive.open(target.url) for _ in range(clients)]
    begun, cpu_s = time.perf_counter(), Usage.of(pids).cpu_s

    async def ask(connection: KeepAlive) -> None:
        while (now := time.perf_counter()) < begun + for_s and (not requests or row.statuses.total() < requests):
            row.statuses[await connection.ask(following())] += 1
            row.times_s.append(time.perf_counter() - now)

    await asyncio.gather(*map(ask, connections))
    row.took_s, row.cpu_s = time.perf_counter() - begun, Usage.of(pids).cpu_s - cpu_s
    for connection in connections:
        connection.close()


async def _during_logins(row: Row, target: Target, following: Next, *, pids: Sequence[int], for_s: float) -> None:
    sign_up = request(target, "POST", "/bp/user/signup", {"name_password": _NAME})
    log_in = request(target, "POST", _LOGIN, {"name_password": _NAME})
    await _repeat(Row(""), target, lambda: sign_up, clients=1, pids=pids, requests=1)
    storm = Row("")
    async with background(
        _repeat(storm, target, lambda: log_in, clients=_PASSWORD_CLIENTS, pids=pids, for_s=2 * for_s + 60)
    ):
        await asyncio.sleep(1)
        await _paced(row, target, following, pids=pids, for_s=for_s)
    row.name += f" ({sum(storm.statuses.values()) / (row.took_s + 1):,.0f}/s)"


async def _paced(row: Row, target: Target, following: Next, *, pids: Sequence[int], for_s: float) -> None:
    """Send a request every `_EVERY_S`. Its time counts from when it is due."""
    free = [await KeepAlive.open(target.url) for _ in range(64)]
    begun, cpu_s = time.perf_counter(), Usage.of(pids).cpu_s

    async def ask(due: float) -> None:
        connection = free.pop()
        row.statuses[await connection.ask(following())] += 1
        row.times_s.append(time.perf_counter() - due)
        free.append(connection)

    async with asyncio.TaskGroup() as tasks:
        for number in range(int(for_s / _EVERY_S)):
            due = begun + number * _EVERY_S
            await asyncio.sleep(due - time.perf_counter())
            tasks.create_task(ask(due))
    row.took_s, row.cpu_s = time.perf_counter() - begun, Usage.of(pids).cpu_s - cpu_s
    for connection in free:
        connection.close()


def _table(rows: Sequence[Row]) -> str:
    header = ("row", "target", "requests/s", "CPU µs/request", "CPU", "ms p50/p95/p99/max", "failed", "verdict")
    return table(header, [row.cells() for row in rows])


if __name__ == "__main__":
    sys.exit(main())
