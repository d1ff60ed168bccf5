"""Replace, kill and cut off nodes under load, and judge that no stream is lost or answered twice.

`python -m bench.nodes` starts PostgreSQL, Valkey, a vendor, three nodes in network namespaces of their own, and
HAProxy with the shipped configuration. Users hold 1,000 streams, one after another, and others sign in and read.
Then each scenario happens once:

- `rolling`: each node is drained by SIGTERM and replaced, one after the other;
- `kill`: a node is killed with SIGKILL, and started again;
- `cut-valkey`, `cut-postgres`: all packets between a node and a store are dropped for 20 s.

Clients resume with `Last-Event-ID`, and repeat refused requests with the same `Idempotency-Key`. The run passes if
no stream is lost, none is answered twice, and no request gets an error other than 503 with `Retry-After`. What the
fault of the node explains is counted separately: its streams that end with `error`, and, if it is killed, requests
that it had received.

It needs root, to create network namespaces, and HAProxy. The files in `build/nodes/` are the logs and the misses.
"""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from app.observing import logs
from bench.forked_children import fork_children
from bench.machine import raise_descriptor_limit
from bench.nodes.judge import judge
from bench.nodes.network import inside_namespace
from bench.nodes.report import summary, write_report
from bench.nodes.run import Plan, run_scenario
from bench.nodes.scenarios import SCENARIOS, Times
from bench.nodes.testbed import open_testbed
from bench.scenarios import seconds
from deploy.running import Failed

_FOLDER = Path("build/nodes")
_PRELOADED = ("app.main", "app.commands.serve")
_DRAIN_S = 90


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        given = inside_namespace(given)
        args = _parser().parse_args(given)
        raise_descriptor_limit()
        logs.configure(level="warning")
        folder = (args.folder or _FOLDER / f"{datetime.now(UTC):%Y%m%d-%H%M%S}").absolute()
        folder.mkdir(parents=True, exist_ok=True)
        for module in _PRELOADED:
            import_module(module)
        fork_children()
        return asyncio.run(_run(args, folder, command=f"python -m bench.nodes {' '.join(given)}".rstrip()))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1


async def _run(args: argparse.Namespace, folder: Path, *, command: str) -> int:
    times = Times(cut_s=args.cut_s, after_s=args.after_s)
    plan = Plan(args.streams, args.model, args.rest, args.over_s, times)
    async with open_testbed(
        folder,
        nodes=args.nodes,
        users=args.streams + args.rest,
        model=args.model,
        drain_s=_DRAIN_S,
        cluster=args.cluster,
    ) as testbed:
        judged = []
        for scenario in args.scenarios:
            judged.append(judge(await run_scenario(testbed, scenario, plan)))
            print(summary(plan, judged[-1:]), flush=True)
    shutil.rmtree(folder / "data")
    (folder / "misses.txt").write_text(
        "".join(f"{one.run.scenario}: {miss}\n" for one in judged for miss in one.misses)
    )
    print(f"Files: {folder}")
    if args.report:
        write_report(args.report, plan, judged, command=command)
    return 1 if any(one.misses for one in judged) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.nodes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--streams", type=int, default=1000, metavar="N", help="streams at a time (default: %(default)s)")
    add("--nodes", type=int, default=3, metavar="N", help="nodes (default: %(default)s)")
    add("--rest", type=int, default=20, metavar="N", help="users of the other endpoints (default: %(default)s)")
    add("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), help="what happens (default: all)")
    add("--model", default="60x400", help="length of the answers, see bench.upstream (default: %(default)s)")
    add(
        "--over",
        dest="over_s",
        type=seconds,
        default=20,
        metavar="TIME",
        help="the first streams begin within this time (default: %(default)s s)",
    )
    add(
        "--cut",
        dest="cut_s",
        type=seconds,
        default=20,
        metavar="TIME",
        help="time without a store (default: %(default)s s)",
    )
    add(
        "--after",
        dest="after_s",
        type=seconds,
        default=10,
        metavar="TIME",
        help="streams begin for this time after each scenario (default: %(default)s s)",
    )
    add("--cluster", action="store_true", help="use a Valkey Cluster of three primaries and three replicas")
    add("--folder", type=Path, help="directory for the logs (default: a new one in build/nodes)")
    add("--report", type=Path, metavar="FILE", help="write the table between the marks in FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
