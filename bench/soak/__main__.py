"""Hundreds of streams at a time for an hour, while vendors fail, processes are replaced and stores go away.

`python -m bench.soak --minutes 60` runs its own PostgreSQL, Valkey, vendor, server of two processes, and a second
server of one process on the same stores, which is never replaced and has every third caller. 300 callers converse
by text and voice, have texts spoken, leave streams and read them on, cancel them, and are cut and ask again. 5% of
the vendor's calls go wrong: HTTP 500, a connection reset before the answer or closed in the middle of it, an error
inside it, no answer. Every 5 minutes SIGHUP replaces the processes. In every 10 minutes each store
goes away once: Valkey is killed, paused, or killed and comes back empty; PostgreSQL is paused or killed.

Judged: every stream has exactly one terminal event, ids without a gap and the right digest, however many responses
it took to read it. A request is answered by a stream, or refused in the envelope while a store is away.
Replacing processes neither refuses a request nor cuts a response. Every turn that ended with `end` is kept as it
was received, in PostgreSQL and in the user's history. No turn is left running, parked or held. The server logs no
error.

Memory: the sum of the PSS of the newest processes, as many as are configured, in the last two fifths of the time
between two replacements. In these windows the processes are equally old, so that their warming up is not counted.
The median of the window that ends at the tenth minute (a sixth of the time) is compared with that of the last one,
and likewise for the parent and for the process that is never replaced: none may grow by more than 5%. Leaks show in
the last of them, because the others' children live for 5 minutes only. Its memory includes the logs of streams that
have ended, which are kept for 2 minutes: at a constant load these are equally many in all the compared windows.

SIGINT and SIGTERM end the load early: its last streams are followed to their end, and all of it is judged and
written. Each miss is printed within seconds, with the ids by which it is found in the server's log.

Exit code 1: something was missed. Files go to `build/soak/`: the server's log, the samples, and every anomaly with
its stream, its request, its time and what was away.
"""

import argparse
import asyncio
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import raise_descriptor_limit
from bench.scenarios import seconds
from bench.soak.callers import SHORT, Lengths
from bench.soak.judge import Anomaly
from bench.soak.notes import Docs
from bench.soak.report import summary, write_report
from bench.soak.run import Plan, Run
from bench.soak.samples import write_csv
from bench.soak.schedule import TARGETS
from bench.soak.stand import standing
from deploy.running import Failed
from streams.wire.codec import dumps

_FOLDER = Path("build/soak")


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    raise_descriptor_limit()
    folder = (args.folder or _FOLDER / f"{datetime.now(UTC):%Y%m%d-%H%M%S}").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    plan = Plan(
        total_s=args.minutes * 60,
        over_s=min(args.over_s, args.minutes * 60 / 3),
        replace_every_s=args.replace_every_s,
        fault_every_s=args.fault_every_s,
        targets=args.disturb,
        seed=args.seed,
        lengths=SHORT if args.short else Lengths(),
    )
    try:
        return asyncio.run(_soak(args, plan, folder, command=" ".join(arguments or sys.argv[1:])))
    except (Failed, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


async def _soak(args: argparse.Namespace, plan: Plan, folder: Path, *, command: str) -> int:
    async with standing(
        folder,
        users=args.streams,
        processes=args.processes,
        lengths=plan.lengths,
        failing=args.failing,
        seed=args.seed,
    ) as stand:
        begun = time.monotonic()
        run = Run(stand, plan, Docs(lambda: time.monotonic() - begun), begun=datetime.now(UTC))
        try:
            with _ending_early(run):
                await run.load()
        finally:
            write_csv(folder / "samples.csv", run.samples)
            _write_anomalies(folder, run.noted())
        judged = run.judge(await run.settle())
    if not args.keep_data:
        shutil.rmtree(folder / "data")
    _write_anomalies(folder, judged.anomalies)
    print(summary(run, judged))
    print(f"Files: {folder}")
    if args.report:
        write_report(args.report, run, judged, command=f"python -m bench.soak {command}".rstrip())
    return 0 if judged.passed else 1


@contextmanager
def _ending_early(run: Run) -> Iterator[None]:
    """Have the first SIGINT or SIGTERM end the load, to judge what there is. A second one ends the process."""
    loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)

    def end() -> None:
        print("bench: no further stream begins; the last ones are followed to their end, then judged", flush=True)
        run.over.set()
        restore()

    def restore() -> None:
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, end)
    try:
        yield
    finally:
        restore()


def _write_anomalies(folder: Path, anomalies: Sequence[Anomaly]) -> None:
    with (folder / "anomalies.jsonl").open("wb") as file:
        file.writelines(dumps(asdict(anomaly)) + b"\n" for anomaly in anomalies)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60, help="(default: %(default)s)")
    parser.add_argument("--streams", type=int, default=300, metavar="N", help="at a time (default: %(default)s)")
    parser.add_argument(
        "--processes", type=int, default=2, metavar="N", help="of the server (default: %(default)s)"
    )
    parser.add_argument("--failing", type=float, default=0.05, metavar="SHARE", help="of the vendor's calls")
    parser.add_argument(
        "--replace-every", dest="replace_every_s", type=seconds, default=300, metavar="TIME", help="by SIGHUP"
    )
    parser.add_argument(
        "--fault-every", dest="fault_every_s", type=seconds, default=600, metavar="TIME", help="of each store"
    )
    parser.add_argument("--disturb", nargs="*", choices=TARGETS, default=TARGETS, help="(default: all of them)")
    parser.add_argument(
        "--over", dest="over_s", type=seconds, default=30, metavar="TIME", help="the first streams begin"
    )
    parser.add_argument("--seed", type=int, default=1, help="of every choice (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="for logs and samples (default: a new one in build/soak)")
    parser.add_argument("--short", action="store_true", help="streams of one or two seconds, to try the tool")
    parser.add_argument("--keep-data", action="store_true", help="keep the data of the stores")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the figures there, between their marks")
    return parser


if __name__ == "__main__":
    sys.exit(main())
