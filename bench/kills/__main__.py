"""Kill processes at random moments while users pay, and judge that nothing is lost or doubled.

`python -m bench.kills --kills 1000` starts PostgreSQL, Valkey, a server of several processes, workers, and the
sandbox as both platforms, which lose 10% of their webhooks. Users buy with cards and by wallet, dispute payments,
subscribe, upgrade, share, join and withdraw. They repeat requests whose connection was cut, or give them up.
Meanwhile `kill -9` ends a random process or worker at random moments, and every so often the parent of all server
processes.

The killed processes are forked from one that has imported their modules, because a new interpreter takes seconds of
CPU time to start. Apart from that, they are started and restarted as always.

Then the traffic stops, the app's clock is moved, and the jobs at fixed times run until nothing changes any more.
The run passes if:
- `verify ledger` finds no difference;
- each payment at a platform has exactly one order and one grant, without any request of the user, and each grant
  has a payment;
- each upgrade that was paid is complete: the old subscription is cancelled, and refunded once;
- each withdrawal has exactly one payout and the right entries;
- each refund is entered once, and each dispute takes a grant back until it is won;
- each acknowledged member of a share group is one;
- no request is answered with 500 or with an error that no kill explains;
- no process is left.

SIGINT and SIGTERM end the traffic early; the run is judged nevertheless. The exit code is 1 if it does not pass.
The files in `build/kills/` are the log of the server and the misses.
"""

import argparse
import asyncio
import shutil
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from app.observing import logs
from bench.forked_children import fork_children
from bench.kills.killing import Kills
from bench.kills.report import passed, summary, write_report
from bench.kills.run import Run
from bench.kills.testbed import open_testbed
from bench.machine import raise_descriptor_limit
from deploy.running import Failed

_FOLDER = Path("build/kills")
_PRELOADED = ("app.main", "app.work.worker", "app.commands.serve", "app.commands.worker", "app.commands.verify")


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    raise_descriptor_limit()
    logs.configure(level="warning")
    folder = (args.folder or _FOLDER / f"{datetime.now(UTC):%Y%m%d-%H%M%S}").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for module in _PRELOADED:
        import_module(module)
    fork_children()
    try:
        return asyncio.run(_kill(args, folder, command=" ".join(arguments or sys.argv[1:])))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1


async def _kill(args: argparse.Namespace, folder: Path, *, command: str) -> int:
    async with open_testbed(folder, processes=args.processes, workers=args.workers, lost=args.lost) as testbed:
        kills = Kills(number=args.kills, per_s=args.per_s, parent_every=args.parent_every)
        run = Run(testbed, kills, callers=args.callers, seed=args.seed)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, run.over.set)
        books, verdicts = await run.run()
    if not args.keep_data:
        shutil.rmtree(folder / "data")
    (folder / "misses.txt").write_text("".join(f"{v.what}: {miss}\n" for v in verdicts for miss in v.misses))
    print(summary(run, books, verdicts))
    print(f"Files: {folder}")
    if args.report:
        write_report(args.report, run, books, verdicts, command=f"python -m bench.kills {command}".rstrip())
    return 0 if passed(verdicts) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.kills", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--kills", type=int, default=1000, metavar="N", help="processes to kill (default: %(default)s)")
    add(
        "--per-second",
        dest="per_s",
        type=float,
        default=3,
        metavar="N",
        help="kills in a second (default: %(default)s)",
    )
    add(
        "--parent-every",
        type=int,
        default=50,
        metavar="N",
        help="one kill in N is of the parent (default: %(default)s)",
    )
    add("--processes", type=int, default=10, metavar="N", help="server processes (default: %(default)s)")
    add("--workers", type=int, default=3, metavar="N", help="workers (default: %(default)s)")
    add("--callers", type=int, default=30, metavar="N", help="users at a time (default: %(default)s)")
    add("--lost", type=float, default=0.1, metavar="SHARE", help="share of lost webhooks (default: %(default)s)")
    add("--seed", type=int, default=1, help="random seed (default: %(default)s)")
    add("--folder", type=Path, help="directory for the log (default: a new one in build/kills)")
    add("--keep-data", action="store_true", help="keep the data of the stores")
    add("--report", type=Path, metavar="FILE", help="write the figures between the marks in FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
