"""Measure how far a storm of logins by password delays the events of running streams.

`python -m bench.logins` starts a server that shares all cores with everything else. 200 paced streams run during
two calm phases and the storm between them, in which many clients log in as fast as the server allows.
"""

import argparse
import asyncio
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aiohttp import ClientSession

from bench.arrivals import prepare
from bench.attack.healthy_clients import Window, run_healthy_clients
from bench.client import Target
from bench.deployment import DeploymentSpec, measure
from bench.generated_section import write_between
from bench.machine import Cores, describe
from bench.scenarios import Load, seconds
from deploy.running import Failed
from streams.tasks import background

MARKS = ("<!-- logins: written by bench.logins -->", "<!-- /logins -->")
MAX_RISE_MS = 20.0
"""By how much the p99 of the gaps between events may rise."""
_MODEL = "100x100"
_WARM_UP_S = 5.0
_PASSWORDS = ("correct horse battery", "staple gun at dawn")
"""The right password, and a wrong one."""


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    seconds: float
    window: Window
    statuses: Counter[int]
    """The number of responses to logins, by status."""


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    prepare()
    ours = frozenset(os.sched_getaffinity(0))
    cores = Cores(ours, ours)
    spec = DeploymentSpec(frozenset({_MODEL}), users=args.streams)
    try:
        phases = measure(spec, cores, lambda deployment: _measure(deployment.target, args))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    report = f"{describe(cores)}\n\n{_table(phases)}\n{_verdict(phases)}\n"
    print(report, end="")
    if args.report:
        write_between(args.report, MARKS, f"\n{report}\n")
    return int(_rise_ms(phases) >= MAX_RISE_MS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.logins", description=__doc__)
    parser.add_argument("--streams", type=int, default=200, metavar="N", help="(default: %(default)s)")
    parser.add_argument(
        "--clients", type=int, default=60, metavar="N", help="logins at once (default: %(default)s)"
    )
    parser.add_argument("--for", dest="for_s", type=seconds, default=20, metavar="TIME", help="(default: 20 s)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the table between the marks in FILE")
    return parser


async def _measure(target: Target, args: argparse.Namespace) -> list[Phase]:
    load = Load("streams", [_MODEL], at_once=args.streams, over_s=_WARM_UP_S, timeout_s=60)
    async with (
        run_healthy_clients(target, load) as clients,
        ClientSession(headers={"X-Service-App-Id": target.app_id}) as http,
    ):
        await _post(http, f"{target.url}/bp/user/signup", _PASSWORDS[0])
        await asyncio.sleep(_WARM_UP_S + 1)
        phases = []
        for name, logins in (("calm before", 0), ("logins", args.clients), ("calm after", 0)):
            statuses: Counter[int] = Counter()
            await clients.window()
            async with background(_storm(http, target.url, logins, statuses)):
                await asyncio.sleep(args.for_s)
                window = await clients.window()
            phases.append(Phase(name, args.for_s, window, statuses))
    return phases


async def _storm(http: ClientSession, url: str, clients: int, statuses: Counter[int]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for _ in range(clients):
            tasks.create_task(_log_in(http, url, statuses))


async def _log_in(http: ClientSession, url: str, statuses: Counter[int]) -> None:
    """Log in again and again, every other time with a wrong password."""
    while True:
        for password in _PASSWORDS:
            statuses[await _post(http, f"{url}/bp/user/login", password)] += 1


async def _post(http: ClientSession, url: str, password: str) -> int:
    body = {"name_password": {"name": "storm", "password": password}}
    async with http.post(url, json=body) as response:
        await response.read()
        return response.status


def _table(phases: Sequence[Phase]) -> str:
    rows = [
        "| phase | logins/s | statuses | gap between events | `GET /bp/ai/conversations` | failed |",
        "|---|---|---|---|---|---|",
    ]
    for phase in phases:
        count = sum(phase.statuses.values())
        by_status = ", ".join(f"{status}: {times:,}" for status, times in sorted(phase.statuses.items()))
        cells = (
            phase.name,
            f"{count / phase.seconds:,.0f}" if count else "-",
            by_status or "-",
            str(phase.window.gap),
            str(phase.window.rest),
            str(phase.window.failed),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join([*rows, "", "Times are p50 / p95 / p99 / maximum in milliseconds.", ""])


def _verdict(phases: Sequence[Phase]) -> str:
    rise_ms = _rise_ms(phases)
    verdict = "met" if rise_ms < MAX_RISE_MS else "missed"
    return f"The p99 of the gaps rises by {rise_ms:.1f} ms (target: less than {MAX_RISE_MS:g} ms): {verdict}."


def _rise_ms(phases: Sequence[Phase]) -> float:
    before, storm, after = (phase.window.gap.at(99) for phase in phases)
    return max(0.0, storm - max(before, after))


if __name__ == "__main__":
    sys.exit(main())
