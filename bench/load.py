"""Put a load of streams on a server and measure latency and CPU cost: `python -m bench.load --help`.

Closed loop (`--at-once`): a fixed number of streams at once; when one ends, the next begins. Open loop (`--rate`):
streams arrive at a rate, however fast the server is; latencies count from the time at which a stream was due.
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
from bench.deployment import APP, Deployment, DeploymentSpec, login, read_tokens, spawned
from bench.figures import HEADINGS, UNKNOWN, Figures, figures, row, table
from bench.machine import Cores, Counters
from bench.scenarios import SCENARIOS, Load, seconds
from deploy.running import Failed
from streams.wire.codec import dumps

_MAX_LOGINS = 10
_STREAMS = 100
_LIMIT_UNKNOWN = (
    "`-`: unknown. The throughput and its limit are known only if the server runs on this machine (`--pid`) and\n"
    "either uses all its cores or has cores that the generator does not use (`taskset` for both).\n"
)


def measure_load(
    load: Load, deployment: Deployment, cores: Cores, *, processes: int = 1, baseline: bool = False, deltas: int = 0
) -> Figures:
    """Run `load` against the server, or against the baseline, and return its figures."""
    target, pids = deployment.target, deployment.pids
    if baseline:
        assert deployment.baseline is not None, "the deployment has no baseline"
        target, pids = deployment.baseline, deployment.baseline_pids
    generators = (os.getpid(), *deployment.vendor_pids)
    before = Counters.now(pids, generators)
    result: Result
    if processes > 1:
        result = run_by_several(load, target, processes, pids=pids)
    else:
        result = uvloop.run(run(load, target, pids=pids))
    after = Counters.now(pids, generators)
    name = "baseline" if baseline else "Parley"
    return figures(load, result, before, after, cores, target=name, deltas=deltas)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    args = parser.parse_args(arguments)
    if sys.platform != "linux":
        parser.error("this tool needs Linux: it reads /proc and sets CPU affinities")
    if not (args.rate or args.at_once):
        args.at_once = 4
    if not (args.streams or args.for_s):
        args.streams = _STREAMS
    args.processes = max(1, min(args.processes, args.at_once or args.processes))  # Each process needs a stream.
    prepare()
    try:
        result = _spawned(args) if args.spawn else _against_url(args)
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    print(table(HEADINGS, [row(result)]), end="")
    if result.bound == UNKNOWN:
        print(f"\n{_LIMIT_UNKNOWN}", end="")
    _print_failures(result)
    if args.json:
        args.json.write_bytes(dumps(asdict(result)))
    if args.report:
        _report(result, args.report, " ".join(arguments or sys.argv[1:]))
    if not result.ended:
        print(f"bench: none of {result.streams:,} streams ended successfully", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.load", description=__doc__)
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--url", help="the URL of a running server")
    target.add_argument("--spawn", action="store_true", help="start a server with a fast fake vendor")
    parser.add_argument("--scenario", choices=SCENARIOS, default="text", help="(default: %(default)s)")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument(
        "--at-once", type=int, default=0, metavar="N", help="closed loop: streams at a time (default: 4)"
    )
    amount.add_argument("--rate", type=float, default=0, metavar="PER_S", help="open loop: streams per second")
    parser.add_argument(
        "--arrivals", choices=("random", "even"), default="random", help="with --rate (default: %(default)s)"
    )
    duration = parser.add_mutually_exclusive_group()
    duration.add_argument(
        "--streams", type=int, default=0, metavar="N", help=f"total number of streams (default: {_STREAMS})"
    )
    duration.add_argument(
        "--for", dest="for_s", type=seconds, default=0, metavar="TIME", help="begin new streams for this long"
    )
    parser.add_argument(
        "--over",
        dest="over_s",
        type=seconds,
        default=0,
        metavar="TIME",
        help="spread the beginning of the first streams over this time",
    )
    parser.add_argument(
        "--audio",
        dest="audio_s",
        type=seconds,
        default=2,
        metavar="TIME",
        help="length of the recording that is sent, a tone (default: 2 s)",
    )
    parser.add_argument(
        "--input-pace",
        type=seconds,
        default=0,
        metavar="TIME",
        help="time between its pieces of 100 ms (default: 0, all at once)",
    )
    parser.add_argument("--read-every", type=int, metavar="N", help="parse every Nth stream in full")
    parser.add_argument(
        "--timeout", type=seconds, default=300, metavar="TIME", help="limit for one stream (default: 300 s)"
    )
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="generator processes (default: 1)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    parser.add_argument("--report", type=Path, metavar="DIR", help="write a report with plots to this directory")
    url_group = parser.add_argument_group("with --url")
    url_group.add_argument(
        "--strategy", default="scripted-text", help="comma-separated strategies (default: %(default)s)"
    )
    url_group.add_argument(
        "--app", default=APP, help="the app (default: %(default)s; `python -m bench.deployment` creates it)"
    )
    url_group.add_argument(
        "--token-file", type=Path, help="session tokens, the last word of each line (default: log in new devices)"
    )
    url_group.add_argument("--pid", type=int, help="the server's process id, if it runs on this machine")
    spawn_group = parser.add_argument_group("with --spawn")
    spawn_group.add_argument(
        "--deltas", type=int, default=50, help="deltas per answer, or pieces of speech (default: %(default)s)"
    )
    spawn_group.add_argument(
        "--pace",
        type=seconds,
        default=0.02,
        metavar="TIME",
        help="time between two deltas (default: 20 ms; 0: as fast as possible)",
    )
    spawn_group.add_argument(
        "--wait", type=seconds, default=0, metavar="TIME", help="time before the first delta (default: 0)"
    )
    spawn_group.add_argument("--servers", type=int, default=1, metavar="N", help="server processes (default: 1)")
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
    spec = DeploymentSpec(frozenset({model}), scenarios=frozenset({args.scenario}), processes=args.servers)
    strategy = "bench" if args.scenario == "pronunciation" else model
    deltas = 0 if args.scenario == "pronunciation" else args.deltas
    cores = Cores.split()
    # asyncio's own event loop starts and stops the stores; the load itself runs on uvloop.
    with asyncio.Runner() as runner:
        context = spawned(spec, cores)
        deployment = runner.run(context.__aenter__())
        try:
            load = _load(args, [strategy], read_every=16)
            return measure_load(load, deployment, cores, processes=args.processes, deltas=deltas)
        finally:
            runner.run(context.__aexit__(None, None, None))


def _against_url(args: argparse.Namespace) -> Figures:
    url = args.url.rstrip("/")
    if args.token_file:
        tokens: Sequence[str] = read_tokens(args.token_file)
    else:
        tokens = asyncio.run(login(url, args.app, min(_MAX_LOGINS, args.at_once or _MAX_LOGINS)))
    if not tokens:
        raise Failed(f"{args.token_file} contains no token")
    usable = frozenset(os.sched_getaffinity(0))
    cores = Cores(frozenset(os.sched_getaffinity(args.pid)) if args.pid else usable, usable)
    deployment = Deployment(Target(url, tokens, args.app), (args.pid,) if args.pid else ())
    load = _load(args, args.strategy.split(","), read_every=1)
    return measure_load(load, deployment, cores, processes=args.processes)


def _print_failures(result: Figures) -> None:
    for label, counts in (("ended with an error", result.errors), ("failed", result.faults)):
        for name, count in counts.items():
            print(f"\n{count:,} {label}: {name}")


def _report(result: Figures, folder: Path, command: str) -> None:
    from bench.plots import latencies, over_time  # noqa: PLC0415 - the import takes a second, and most loads draw no plot

    folder.mkdir(parents=True, exist_ok=True)
    spreads = {
        "first event": result.first_event,
        "first output": result.first_output,
        "gap": result.gap,
        "transit": result.transit,
    }
    latencies(folder / "latencies.png", f"{result.load}: {result.streams:,} streams", spreads)
    over_time(folder / "over-time.png", f"{result.load} over time", [result])
    faults = "".join(f"- {count:,}: {name}\n" for name, count in {**result.errors, **result.faults}.items())
    unknown = f"{_LIMIT_UNKNOWN}\n" if result.bound == UNKNOWN else ""
    text = (
        f"# Load: {result.load}\n\n`python -m bench.load {command}`\n\n"
        f"{result.streams:,} streams in {result.seconds:.1f} s, {result.failed:,} failed; "
        f"{result.read_in_full:,} were parsed in full.\n\n{table(HEADINGS, [row(result)])}\n"
        f"{unknown}"
        "![latencies](latencies.png)\n\n![over time](over-time.png)\n"
    )
    (folder / "report.md").write_text(text + (f"\n## Failures\n\n{faults}" if faults else ""))
    (folder / "result.json").write_bytes(dumps(asdict(result)))


if __name__ == "__main__":
    sys.exit(main())
