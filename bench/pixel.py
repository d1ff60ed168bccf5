"""Measure how many tracking pixels a second one server process returns.

`python -m bench.pixel` starts a server on a core of its own, if there are two. Each of many connections requests
pixels one after another, with message ids that are looked up in the database in batches, and do not exist. Then
they request pixels in a way that the server does not answer directly (`app/http/wire/direct.py`), and a constant
answer of aiohttp alone (`bench.baseline`).
"""

import argparse
import asyncio
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import cast
from urllib.parse import urlsplit

from bench.arrivals import prepare
from bench.client import Target
from bench.deployment import Deployment, DeploymentSpec, measure
from bench.generated_section import write_between
from bench.machine import Cores, Usage, describe
from bench.scenarios import seconds
from deploy.running import Failed
from streams.wire.ids import new_id

MARKS = ("<!-- pixel: written by bench.pixel -->", "<!-- /pixel -->")
MIN_RATE = 10_000
"""Pixels a second."""
_PIXEL = "/bp/res/i.gif?e=reader-%d%40example.com&mid=%s&u=0190"
_CONSTANT = "aiohttp, constant"
_WARM_UP_S = 1.0
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@dataclass(slots=True)
class Counted:
    """The answers that the clients have received."""

    answers: int = 0
    wrong: int = 0
    latencies_ms: list[float] = field(default_factory=list)


class _Client(asyncio.Protocol):
    """A connection that requests the next answer when it has got one."""

    def __init__(self, counted: Counted, number: int, *, path: str, header: str, begins: bytes) -> None:
        self._counted = counted
        self._request = (
            f"GET {path.replace('%d', str(number))} HTTP/1.1\r\n{header}"
            "Host: localhost\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0\r\n\r\n"
        )
        self._begins = begins
        self._received = b""
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, body = self._received.partition(b"\r\n\r\n")
        if not separator or len(body) < int(_LENGTH.findall(head)[0]):
            return
        counted = self._counted
        counted.latencies_ms.append((time.perf_counter() - self._sent_at) * 1000)
        if head.startswith(b"HTTP/1.1 200 ") and body.startswith(self._begins):
            counted.answers += 1
        else:
            counted.wrong += 1
        self._received = b""
        self._ask()

    def _ask(self) -> None:
        self._sent_at = time.perf_counter()
        self._transport.write(self._request.replace("%s", new_id()).encode())


@dataclass(frozen=True, slots=True)
class Result:
    rate: float
    cpu_us: float
    """CPU time of the server for each answer, in microseconds."""
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
        spec = DeploymentSpec(frozenset(), users=1, baseline=True)
        results = measure(spec, cores, lambda deployment: _measure_all(deployment, args))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    report = f"{describe(cores)}\n\n{_table(results)}\n"
    print(report, end="")
    if args.report:
        write_between(args.report, MARKS, f"\n{report}\n")
    return int(results["pixel"].rate < MIN_RATE or any(result.wrong for result in results.values()))


async def _measure_all(deployment: Deployment, args: argparse.Namespace) -> Mapping[str, Result]:
    assert deployment.baseline is not None, "it is a part of the deployment"
    server, relay = (deployment.target, deployment.pids), (deployment.baseline, deployment.baseline_pids)
    unusual = "Content-Length: 0\r\n"
    return {
        "pixel": await _measure(*server, args, path=_PIXEL, begins=b"GIF89a"),
        "pixel, not directly": await _measure(*server, args, path=_PIXEL, header=unusual, begins=b"GIF89a"),
        _CONSTANT: await _measure(*relay, args, path="/bp/user/me", begins=b'{"user":'),
    }


async def _measure(
    target: Target, pids: Sequence[int], args: argparse.Namespace, *, path: str, header: str = "", begins: bytes
) -> Result:
    counted, server = Counted(), urlsplit(target.url)
    assert server.hostname, "a URL of the deployment has a host and a port"
    loop, client = asyncio.get_running_loop(), partial(_Client, path=path, header=header, begins=begins)
    clients = [
        await loop.create_connection(partial(client, counted, number), server.hostname, server.port or 80)
        for number in range(args.connections)
    ]
    await asyncio.sleep(_WARM_UP_S)
    counted.answers, counted.latencies_ms = 0, []
    began, before = time.perf_counter(), Usage.of(pids)
    await asyncio.sleep(args.for_s)
    spent_s, after = time.perf_counter() - began, Usage.of(pids)
    answers, latencies = counted.answers, quantiles(counted.latencies_ms, n=100)
    for transport, _ in clients:
        transport.abort()
    return Result(
        rate=answers / spent_s,
        cpu_us=(after.cpu_s - before.cpu_s) / answers * 1e6,
        p50_ms=latencies[49],
        p99_ms=latencies[98],
        wrong=counted.wrong,
    )


def _table(results: Mapping[str, Result]) -> str:
    head = ("| answer | a second | CPU each | p50 | p99 | wrong answers |", "|---|---|---|---|---|---|")
    rows = (_row(name, result, results[_CONSTANT].cpu_us) for name, result in results.items())
    return "\n".join((*head, *rows))


def _row(name: str, result: Result, constant_us: float) -> str:
    rate = f"{result.rate:,.0f}" + (f" (at least {MIN_RATE:,})" if name == "pixel" else "")
    return (
        f"| {name} | {rate} | {result.cpu_us:.0f} µs, {result.cpu_us / constant_us:.1f} times aiohttp's | "
        f"{result.p50_ms:.1f} ms | {result.p99_ms:.1f} ms | {result.wrong} |"
    )


if __name__ == "__main__":
    sys.exit(main())
