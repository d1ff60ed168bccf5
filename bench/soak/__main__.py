"""Run hundreds of streams for an hour while vendors fail, processes are replaced and stores become unavailable.

`python -m bench.soak --minutes 60` starts PostgreSQL, Valkey, a vendor and a server with two processes. A second
server on the same stores has one process, the long-lived process, which is never replaced and serves every third
caller. 300 callers hold conversations by text and by up to 30 s of voice, request speech, leave and resume streams,
cancel them, and repeat requests after a lost connection. 5% of the vendor's calls fail: HTTP 500, a connection that
is reset before the answer or closed half-way, an error within the answer, or no answer. Every 5 minutes SIGHUP
replaces the processes of the first server. Every 10 minutes each store fails once: Valkey is killed, paused, or
killed and restarted without data; PostgreSQL is paused or killed.

The run passes if:
- every stream has exactly one terminal event, no gap in its ids and the right digest, over all its responses;
- every request begins a stream, or is refused with an error envelope while a store is unavailable;
- no response breaks off while both stores are available: replacing processes is no reason;
- every turn that ended with `end` is stored as the caller received it, in PostgreSQL and in the user's history;
- no turn is left running, queued or locked, and the servers log no error;
- memory does not grow.

Memory is the anonymous memory of the newest processes, as many as are configured. It is the median of each ten
minutes (a sixth of the time), in which every disturbance happens once, and processes of all ages are measured.
After the first ten minutes, no median may be over 5% above that of the second. The same holds for the parent
process and for the long-lived process. Only the long-lived process shows a slow leak, because the other processes
live for 5 minutes. The memory includes the event logs of ended streams, which are kept for 2 minutes: it varies
by some percent within minutes.

SIGINT and SIGTERM end the load early: the last streams are read to their end, then the run is judged and its
results are written. Each miss is printed within seconds, with the ids that identify it in the server's log.

The exit code is 1 if the run does not pass. The files in `build/soak/` are the log of both servers, the samples,
and every anomaly with its stream, request, time and the disturbances at that time.
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
from bench.soak.observations import Observations
from bench.soak.report import summary, write_report
from bench.soak.run import Plan, Run
from bench.soak.samples import write_csv
from bench.soak.schedule import TARGETS
from bench.soak.testbed import open_testbed
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
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1


async def _soak(args: argparse.Namespace, plan: Plan, folder: Path, *, command: str) -> int:
    async with open_testbed(
        folder,
        users=args.streams,
        processes=args.processes,
        lengths=plan.lengths,
        failing=args.failing,
        seed=args.seed,
    ) as testbed:
        begun = time.monotonic()
        run = Run(testbed, plan, Observations(lambda: time.monotonic() - begun), begun=datetime.now(UTC))
        try:
            with _end_early_on_signals(run):
                await run.load()
        finally:
            write_csv(folder / "samples.csv", run.samples)
            _write_anomalies(folder, run.anomalies_so_far())
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
def _end_early_on_signals(run: Run) -> Iterator[None]:
    """End the load at the first SIGINT or SIGTERM, so that the run is judged. A second signal ends the process."""
    loop, signals = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)

    def end_load() -> None:
        print("bench: no new streams; the run is judged when the last ones have ended", flush=True)
        run.load_over.set()
        restore()

    def restore() -> None:
        for number in signals:
            loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, end_load)
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
    parser.add_argument("--minutes", type=float, default=60, help="length of the run (default: %(default)s)")
    parser.add_argument(
        "--streams", type=int, default=300, metavar="N", help="streams at a time (default: %(default)s)"
    )
    parser.add_argument(
        "--processes", type=int, default=2, metavar="N", help="server processes (default: %(default)s)"
    )
    parser.add_argument(
        "--failing",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="share of the vendor's calls that fail (default: %(default)s)",
    )
    parser.add_argument(
        "--replace-every",
        dest="replace_every_s",
        type=seconds,
        default=300,
        metavar="TIME",
        help="time between two replacements of the processes (default: 5m; 0: never)",
    )
    parser.add_argument(
        "--fault-every",
        dest="fault_every_s",
        type=seconds,
        default=600,
        metavar="TIME",
        help="time between two faults of the same store (default: 10m; 0: never)",
    )
    parser.add_argument(
        "--disturb", nargs="*", choices=TARGETS, default=TARGETS, help="what to disturb (default: all)"
    )
    parser.add_argument(
        "--over",
        dest="over_s",
        type=seconds,
        default=30,
        metavar="TIME",
        help="spread the beginning of the first streams over this time (default: %(default)s s)",
    )
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: %(default)s)")
    parser.add_argument(
        "--folder", type=Path, help="directory for logs and samples (default: a new one in build/soak)"
    )
    parser.add_argument("--short", action="store_true", help="use streams of 1 to 2 s, to try the tool")
    parser.add_argument("--keep-data", action="store_true", help="keep the data of the stores")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the figures between the marks in FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
