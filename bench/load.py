"""Streams against a server, and what they cost it: `python -m bench.load --help`.

Closed loop (`--at-once`): so many streams at once, each followed by the next. Open loop (`--rate`): streams that
arrive, whatever the server makes of them; their latency counts from when they were due.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import uvloop

from bench.arrivals import Result, prepare, run, run_by_several
from bench.client import Target
from bench.deployment import APP, Deployment, Wanted, login, read_tokens, spawned
from bench.figures import HEADINGS, UNKNOWN, Figures, figures, row, table
from bench.machine import Cores, Reading
from bench.scenarios import SCENARIOS, Load, seconds
from deploy.running import Failed
from streams.wire.codec import dumps

_MOST_LOGINS = 10
_STREAMS = 100
_LIMIT_UNKNOWN = (
    "`-` cannot be known. What limits a server, and so its throughput, is known where it runs here (`--pid`)\n"
    "and fills what it may use, or has cores that the generator keeps off (`taskset` for both).\n"
)


def measured(
    load: Load, deployment: Deployment, cores: Cores, *, processes: int = 1, baseline: bool = False, deltas: int = 0
) -> Figures:
    """Run `load` against the server, or the baseline beside it."""
    target, pids = deployment.target, deployment.pids
    if baseline:
        assert deployment.baseline is not None, "it runs"
        target, pids = deployment.baseline, deployment.baseline_pids
    generators = (os.getpid(), *deployment.vendor_pids)
    before = Reading.now(pids, generators)
    result: Result
    if processes > 1:
        result = run_by_several(load, target, processes, pids=pids)
    else:
        result = uvloop.run(run(load, target, pids=pids))
    after = Reading.now(pids, generators)
    name = "baseline" if baseline else "Parley"
    return figures(load, result, before, after, cores, target=name, deltas=deltas)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    args = parser.parse_args(arguments)
    if sys.platform != "linux":
        parser.error("it reads /proc and places processes on cores, as Linux has them")
    if not (args.rate or args.at_once):
        args.at_once = 4
    if not (args.streams or args.for_s):
        args.streams = _STREAMS
    args.processes = max(1, min(args.processes, args.at_once or args.processes))  # none without a place
    prepare()
    try:
        found = _spawned(args) if args.spawn else _elsewhere(args)
    except (Failed, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(table(HEADINGS, [row(found)]), end="")
    if found.bound == UNKNOWN:
        print(f"\n{_LIMIT_UNKNOWN}", end="")
    _tell(found)
    if args.json:
        args.json.write_bytes(dumps(asdict(found)))
    if args.report:
        _report(found, args.report, " ".join(arguments or sys.argv[1:]))
    if not found.ended:
        print(f"bench: none of {found.streams:,} streams came to its end", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--url", help="of the server")
    where.add_argument("--spawn", action="store_true", help="a server of its own, with a vendor that is fast")
    parser.add_argument("--scenario", choices=SCENARIOS, default="text")
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--at-once", type=int, default=0, metavar="N", help="closed loop; 4 unless told")
    much.add_argument("--rate", type=float, default=0, metavar="PER_S", help="open loop")
    parser.add_argument("--arrivals", choices=("random", "even"), default="random", help="with --rate")
    long = parser.add_mutually_exclusive_group()
    long.add_argument("--streams", type=int, default=0, metavar="N", help=f"in all; {_STREAMS} unless told")
    long.add_argument("--for", dest="for_s", type=seconds, default=0, metavar="TIME", help="begin some so long")
    parser.add_argument("--over", dest="over_s", type=seconds, default=0, metavar="TIME", help="first ones begin")
    parser.add_argument(
        "--audio", dest="audio_s", type=seconds, default=2, metavar="TIME", help="of sound sent: a tone, no speech"
    )
    parser.add_argument(
        "--input-pace", type=seconds, default=0, metavar="TIME", help="between pieces of that sound of 100 ms"
    )
    parser.add_argument("--read-every", type=int, metavar="N", help="read one stream of so many in full")
    parser.add_argument("--timeout", type=seconds, default=300, metavar="TIME", help="of a stream")
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="that make the load")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--report", type=Path, metavar="DIR", help="write a report with pictures there")
    there = parser.add_argument_group("with --url")
    there.add_argument("--strategy", default="scripted-text", help="or several, parted by commas")
    there.add_argument("--app", default=APP, help="(default: %(default)s; python -m bench.deployment makes it)")
    there.add_argument("--token-file", type=Path, help="sessions: the last word of each line; else devices log in")
    there.add_argument("--pid", type=int, help="of the server, where it runs on this machine")
    own = parser.add_argument_group("with --spawn")
    own.add_argument("--deltas", type=int, default=50, help="of the vendor's answer, or pieces of its speech")
    own.add_argument("--pace", type=seconds, default=0.02, metavar="TIME", help="between two of them; 0: unpaced")
    own.add_argument("--wait", type=seconds, default=0, metavar="TIME", help="before the first of them")
    own.add_argument("--servers", type=int, default=1, metavar="N", help="processes of the server")
    return parser


def _load(args: argparse.Namespace, strategies: Sequence[str], *, read_every: int) -> Load:
    return Load(
        args.scenario,
        strategies,
        scenario=args.scenario,
        streams=args.streams,
        for_s=args.for_s,
        at_once=args.at_once,
        over_s=args.over_s,
        rate=args.rate,
        arrivals=args.arrivals,
        audio_s=args.audio_s,
        input_every_s=args.input_pace,
        read_every=args.read_every or read_every,
        timeout_s=args.timeout,
    )


def _spawned(args: argparse.Namespace) -> Figures:
    wait = f"w{args.wait * 1000:.0f}" if args.wait else ""
    model = f"{args.deltas}x{args.pace * 1000:.0f}{wait}"
    wanted = Wanted(frozenset({model}), scenarios=frozenset({args.scenario}), processes=args.servers)
    strategy = "bench" if args.scenario == "pronunciation" else model
    deltas = 0 if args.scenario == "pronunciation" else args.deltas
    cores = Cores.parted()
    # The stores' processes want asyncio's own loop: theirs lives to start and stop, the load has a fast one.
    with asyncio.Runner() as runner:
        context = spawned(wanted, cores)
        deployment = runner.run(context.__aenter__())
        try:
            load = _load(args, [strategy], read_every=16)
            return measured(load, deployment, cores, processes=args.processes, deltas=deltas)
        finally:
            runner.run(context.__aexit__(None, None, None))


def _elsewhere(args: argparse.Namespace) -> Figures:
    url = args.url.rstrip("/")
    if args.token_file:
        tokens: Sequence[str] = read_tokens(args.token_file)
    else:
        tokens = asyncio.run(login(url, args.app, min(_MOST_LOGINS, args.at_once or _MOST_LOGINS)))
    if not tokens:
        raise Failed(f"{args.token_file} holds no token")
    everywhere = frozenset(os.sched_getaffinity(0))
    cores = Cores(frozenset(os.sched_getaffinity(args.pid)) if args.pid else everywhere, everywhere)
    deployment = Deployment(Target(url, tokens, args.app), (args.pid,) if args.pid else ())
    load = _load(args, args.strategy.split(","), read_every=1)
    return measured(load, deployment, cores, processes=args.processes)


def _tell(found: Figures) -> None:
    for what, told in (("ended in error", found.errors), ("failed", found.faults)):
        for name, count in told.items():
            print(f"\n{count:,} {what}: {name}")


def _report(found: Figures, folder: Path, command: str) -> None:
    from bench.plots import latencies, over_time  # noqa: PLC0415 - it takes a second, and most loads need none

    folder.mkdir(parents=True, exist_ok=True)
    spreads = {
        "first event": found.first_event,
        "first output": found.first_output,
        "gap": found.gap,
        "transit": found.transit,
    }
    latencies(folder / "latencies.png", f"{found.load}: {found.streams:,} streams", spreads)
    over_time(folder / "over-time.png", f"{found.load} over time", [found])
    faults = "".join(f"- {count:,}: {name}\n" for name, count in {**found.errors, **found.faults}.items())
    unknown = f"{_LIMIT_UNKNOWN}\n" if found.bound == UNKNOWN else ""
    text = (
        f"# Load: {found.load}\n\n`python -m bench.load {command}`\n\n"
        f"{found.streams:,} streams in {found.seconds:.1f} s, {found.failed:,} failed; "
        f"{found.read_in_full:,} were read in full.\n\n{table(HEADINGS, [row(found)])}\n"
        f"{unknown}"
        "![latencies](latencies.png)\n\n![over time](over-time.png)\n"
    )
    (folder / "report.md").write_text(text + (f"\n## Failures\n\n{faults}" if faults else ""))
    (folder / "result.json").write_bytes(dumps(asdict(found)))


if __name__ == "__main__":
    sys.exit(main())
