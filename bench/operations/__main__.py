"""Measure what one call of each kind costs Valkey, PostgreSQL and the processes.

`python -m bench.operations` starts PostgreSQL, Valkey, a vendor, a server process and a worker. It makes calls of
one kind at a time, and reads the counters of the stores and of `/proc` before and after. What happens without calls
is measured first, and subtracted. The streams are answers of `--deltas` deltas, one every `--pace` milliseconds,
100 at a time. Other calls are made by 8 clients.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from app.observing import logs
from bench.machine import Cores, describe, raise_descriptor_limit
from bench.operations.kinds import Kind
from bench.operations.measuring import Cost, Memory, Pauses, measure, measure_background, measure_memory
from bench.operations.report import summary, write_report
from bench.operations.requests import REQUESTS
from bench.operations.streams import AT_ONCE, STREAMS
from bench.operations.testbed import open_testbed
from bench.scenarios import seconds
from bench.store_counters import FLUSHED_S
from deploy.running import Failed

KINDS: Sequence[Kind] = (*STREAMS, *REQUESTS)
_SOME_USERS = 100


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    args = _parser().parse_args(given)
    raise_descriptor_limit()
    logs.configure(level="warning")
    folder = Path(tempfile.mkdtemp(prefix="parley-operations-"))
    usable = frozenset(os.sched_getaffinity(0))
    machine = describe(Cores(usable, usable))
    try:
        costs, memories = asyncio.run(_measure(folder, args))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    command = " ".join(["python -m bench.operations", *given])
    text = summary(costs, memories, deltas=args.deltas, pace_ms=args.pace_ms, machine=machine, command=command)
    print(text)
    if args.report:
        write_report(args.report, text)
    return 0


async def _measure(folder: Path, args: argparse.Namespace) -> tuple[list[Cost], Sequence[Memory]]:
    pauses, kinds = Pauses(args.idle_s, args.settle_s), [kind for kind in KINDS if args.only in kind.name]
    users = max(AT_ONCE, args.calls) + _SOME_USERS
    async with open_testbed(folder, users=users, deltas=args.deltas, pace_ms=args.pace_ms) as testbed:
        background = await measure_background(testbed, pauses)
        costs = []
        for kind in kinds:
            costs.append(await measure(testbed, kind, background, pauses, calls=args.calls))
            print(f"{kind.name}: {costs[-1].seconds:.1f} s", flush=True)
        stream_s = args.deltas * args.pace_ms / 1000
        return costs, await measure_memory(testbed, pauses, stream_s=stream_s)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.operations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--calls", type=int, default=1000, metavar="N", help="calls of a kind (default: %(default)s)")
    add("--deltas", type=int, default=100, metavar="N", help="length of the answers (default: %(default)s)")
    add(
        "--pace",
        dest="pace_ms",
        type=int,
        default=30,
        metavar="MS",
        help="between deltas (default: %(default)s ms)",
    )
    add("--only", metavar="WORD", default="", help="measure only the kinds whose name contains it")
    add(
        "--idle",
        dest="idle_s",
        type=seconds,
        default=120,
        metavar="TIME",
        help="how long the background work is measured (default: %(default)s s)",
    )
    add(
        "--settle",
        dest="settle_s",
        type=seconds,
        default=FLUSHED_S,
        metavar="TIME",
        help="pause after each kind; PostgreSQL reports transactions up to 10 s late (default: %(default)s s)",
    )
    add("--report", type=Path, metavar="FILE", help="write the tables between the marks in FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
