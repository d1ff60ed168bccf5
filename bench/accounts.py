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
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

from bench.arrivals import prepare
from bench.client import Target
from bench.deployment import Deployment, DeploymentSpec, measure
from bench.generated_section import write_between
from bench.keep_alive import request
from bench.machine import Cores, describe
from bench.request_rows import Next, Row, paced, repeat, table
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


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    prepare()
    cores = Cores.split()
    spec = DeploymentSpec(frozenset(), users=_DEVICES, baseline=True, profile=args.profile)
    try:
        rows = measure(spec, cores, lambda deployment: _measure(deployment, args))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    report = f"{describe(cores)}\n\n{table(rows)}\n"
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
    for row, next_request, warm_up in rows:
        if args.only in row.name:
            await repeat(Row(""), target, next_request, clients=args.clients, pids=pids, requests=warm_up)
            _toggle(pids, args.profile)
            await repeat(row, target, next_request, clients=args.clients, pids=pids, for_s=args.for_s)
            _toggle(pids, args.profile)
            measured.append(row)
    row = Row("`GET /bp/user/me` of the baseline")
    if args.only in row.name:
        assert deployment.baseline is not None, "the deployment has a baseline"
        await repeat(
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


async def _during_logins(
    row: Row, target: Target, next_request: Next, *, pids: Sequence[int], for_s: float
) -> None:
    sign_up = request(target, "POST", "/bp/user/signup", {"name_password": _NAME})
    log_in = request(target, "POST", _LOGIN, {"name_password": _NAME})
    await repeat(Row(""), target, lambda: sign_up, clients=1, pids=pids, requests=1)
    storm = Row("")
    async with background(
        repeat(storm, target, lambda: log_in, clients=_PASSWORD_CLIENTS, pids=pids, for_s=2 * for_s + 60)
    ):
        await asyncio.sleep(1)
        await paced(row, target, next_request, pids=pids, for_s=for_s, every_s=_EVERY_S)
    row.name += f" ({sum(storm.statuses.values()) / (row.took_s + 1):,.0f}/s)"


if __name__ == "__main__":
    sys.exit(main())
