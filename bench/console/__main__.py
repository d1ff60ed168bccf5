"""Fill a database with the rows of a large deployment, and measure the lists of the admin API and the overview.

`python -m bench.console` starts the stores and a server on a core of its own, if there are two. The exit code is 1
if the 95th percentile of a call exceeds 200 ms, or if an open overview costs a loaded server 1% of a core or more.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from aiohttp import ClientSession, ClientTimeout

from app.observing import logs
from app.settings import Settings
from app.stores import open_stores
from bench.arrivals import prepare, run
from bench.console.configs import write_configs
from bench.console.filling import fill
from bench.console.measuring import Measured, measure_all, read_log
from bench.console.operations import operations
from bench.console.overview import MODEL, Cost, load_of, measure_overview
from bench.console.report import report, table_of_all
from bench.console.rows import Size
from bench.console.values import Values
from bench.deployment import Deployment, DeploymentSpec, measure
from bench.generated_section import write_between
from bench.machine import Cores, describe, raise_priority
from bench.scenarios import seconds
from deploy.running import Failed
from streams.tasks import background

MARKS = ("<!-- console: written by bench.console -->", "<!-- /console -->")
_SMALL = Size(users=500, records=1000, configs=120)
_CALLS = 30
_TIMEOUT_S = 120
_LIVE = "/admin/api/streams"
"""The list that is measured while streams run."""
_LIVE_S = 60.0


@dataclass(slots=True)
class _Filling:
    """Fills the stores before the server starts, and keeps the values to call it with."""

    size: Size
    values: Values | None = None
    rows: int = 0
    took_s: float = 0

    async def fill(self, env: Mapping[str, str]) -> None:
        begun = time.monotonic()
        async with open_stores(Settings.from_env(env)) as stores:
            await write_configs(stores.configs, count=self.size.configs)
        conn = await asyncpg.connect(env["DATABASE_URL"])
        self.values = await fill(conn, self.size)
        self.rows = await conn.fetchval("select sum(reltuples)::bigint from pg_class where relkind = 'r'")
        await conn.close()
        self.took_s = time.monotonic() - begun
        print(f"bench: {self.rows:,} rows in {self.took_s:.0f} s", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    prepare()
    logs.configure(level="error")
    begun, filling = (
        time.monotonic(),
        _Filling(_SMALL if args.small else Size(args.users, args.records, args.configs)),
    )
    cores = Cores.split()
    spec = DeploymentSpec(frozenset({MODEL}), durable=False, fill=filling.fill)
    try:
        measured, cost = measure(spec, cores, lambda deployment: _measure(deployment, filling, args))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    command = " ".join(["python -m bench.console", *(sys.argv[1:] if arguments is None else arguments)])
    minutes = (time.monotonic() - begun) / 60
    took = f"{minutes:.0f} minutes, {filling.took_s / 60:.0f} of them for {filling.rows:,} rows"
    written = f"{describe(cores)}. `{command}` took {took}.\n\n{report(measured)}\n{cost}\n"
    print(f"{table_of_all(measured)}\n{written}", end="")
    if args.report:
        write_between(args.report, MARKS, f"\n{written}\n")
    return int(not cost.met or not all(each.met for each in measured))


async def _measure(
    deployment: Deployment, filling: _Filling, args: argparse.Namespace
) -> tuple[list[Measured], Cost]:
    assert filling.values is not None, "the stores are filled before the server starts"
    assert deployment.log is not None, "the benchmark has started the server"
    raise_priority(os.getpid())  # Otherwise a busy machine delays the calls, and with them the end of the command.
    headers = {"Authorization": f"Bearer {deployment.admin_token}"}
    timeout = ClientTimeout(total=_TIMEOUT_S)
    async with ClientSession(deployment.target.url, headers=headers, timeout=timeout) as http:
        wanted = [each for each in operations(filling.values) if args.only in each.path]
        calls = 1 if args.small else _CALLS
        quiet, live = ([each for each in wanted if (each.path == _LIVE) is is_live] for is_live in (False, True))
        measured = await measure_all(http, filling.values, of=quiet, calls=calls)
        async with background(run(load_of(args.rate, _LIVE_S), deployment.target)):
            measured += await measure_all(http, filling.values, of=live, calls=calls)
        rounds, for_s = (1, 1.0) if args.small else (args.rounds, args.for_s)
        cost = await measure_overview(deployment, http, rate=args.rate, for_s=for_s, rounds=rounds)
    read_log(measured, deployment.log)
    return measured, cost


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--users", type=int, default=1_000_000, metavar="N", help="(default: %(default)s)")
    parser.add_argument(
        "--records", type=int, default=10_000_000, metavar="N", help="turns of conversations (default: %(default)s)"
    )
    parser.add_argument("--configs", type=int, default=5_000, metavar="N", help="(default: %(default)s)")
    parser.add_argument(
        "--small", action="store_true", help="few rows and one call of each kind: a check in seconds"
    )
    parser.add_argument(
        "--only", default="", metavar="PATH", help="measure only operations whose path contains this"
    )
    parser.add_argument("--rate", type=float, default=60, metavar="PER_S", help="streams (default: %(default)s)")
    parser.add_argument(
        "--for", dest="for_s", type=seconds, default=20, metavar="TIME", help="a round (default: 20 s)"
    )
    parser.add_argument("--rounds", type=int, default=8, metavar="N", help="of the overview (default: %(default)s)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the tables between the marks in FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
