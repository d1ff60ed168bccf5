"""Measure how many tracking pixels a second one server process returns.

`python -m bench.pixel` starts a server on a core of its own, if there are two. Each of many connections requests
pixels one after another, with message ids that are looked up in the database in batches, and do not exist.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import cast
from urllib.parse import urlsplit

from bench.arrivals import prepare
from bench.deployment import Deployment, DeploymentSpec, measure
from bench.generated_section import write_between
from bench.machine import Cores, Usage, describe
from bench.scenarios import seconds
from deploy.running import Failed
from streams.wire.ids import new_id

MARKS = ("<!-- pixel: written by bench.pixel -->", "<!-- /pixel -->")
MIN_RATE = 10_000
"""Pixels a second."""
_IMAGE_BYTES = 43
_WARM_UP_S = 1.0


@dataclass(slots=True)
class Counted:
    """What the clients have seen."""

    images: int = 0
    wrong: int = 0
    latencies_ms: list[float] = field(default_factory=list)


class _Client(asyncio.Protocol):
    """A connection that requests the next pixel when it has got one."""

    def __init__(self, counted: Counted, number: int) -> None:
        self._counted = counted
        self._number = number
        self._received = b""
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator or len(body) < _IMAGE_BYTES:
            return
        counted = self._counted
        counted.latencies_ms.append((time.perf_counter() - self._sent_at) * 1000)
        if head.startswith(b"HTTP/1.1 200 ") and body.startswith(b"GIF89a"):
            counted.images += 1
        else:
            counted.wrong += 1
        self._received = b""
        self._ask()

    def _ask(self) -> None:
        self._sent_at = time.perf_counter()
        self._transport.write(
            b"GET /bp/res/i.gif?e=reader-%d%%40example.com&mid=%b&u=0190 HTTP/1.1\r\n"
            b"Host: localhost\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0\r\n\r\n"
            % (self._number, new_id().encode())
        )


@dataclass(frozen=True, slots=True)
class Result:
    rate: float
    cpu_us: float
    """CPU time of the server for each pixel, in microseconds."""
    p50_ms: float
    p99_ms: float
    wrong: int


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.pixel", description=__doc__)
    parser.add_argument("--connections", type=int, default=50, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--for", dest="for_s", type=seconds, default=10, metavar="TIME", help="(default: 10 s)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the table between the marks in FILE")
    args = parser.parse_args(arguments)
    prepare()
    cores = Cores.split()
    try:
        spec = DeploymentSpec(frozenset(), users=1)
        result = measure(spec, cores, lambda deployment: _measure(deployment, args))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    report = f"{describe(cores)}\n\n{_table(result)}\n"
    print(report, end="")
    if args.report:
        write_between(args.report, MARKS, f"\n{report}\n")
    return int(result.rate < MIN_RATE or result.wrong > 0)


async def _measure(deployment: Deployment, args: argparse.Namespace) -> Result:
    counted, server = Counted(), urlsplit(deployment.target.url)
    loop = asyncio.get_running_loop()
    clients = [
        await loop.create_connection(lambda number=number: _Client(counted, number), server.hostname, server.port)
        for number in range(args.connections)
    ]
    await asyncio.sleep(_WARM_UP_S)
    counted.images, counted.latencies_ms = 0, []
    began, before = time.perf_counter(), Usage.of(deployment.pids)
    await asyncio.sleep(args.for_s)
    spent_s, after = time.perf_counter() - began, Usage.of(deployment.pids)
    images, latencies = counted.images, quantiles(counted.latencies_ms, n=100)
    for transport, _ in clients:
        transport.abort()
    return Result(
        rate=images / spent_s,
        cpu_us=(after.cpu_s - before.cpu_s) / images * 1e6,
        p50_ms=latencies[49],
        p99_ms=latencies[98],
        wrong=counted.wrong,
    )


def _table(result: Result) -> str:
    return (
        "| pixels/s | CPU each | p50 | p99 | wrong answers |\n|---|---|---|---|---|\n"
        f"| {result.rate:,.0f} (at least {MIN_RATE:,}) | {result.cpu_us:.0f} µs | {result.p50_ms:.1f} ms | "
        f"{result.p99_ms:.1f} ms | {result.wrong} |"
    )


if __name__ == "__main__":
    sys.exit(main())
