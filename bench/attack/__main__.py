"""Attack a server, and judge each attack by its effect on healthy clients that run at the same time.

The healthy clients are also measured before and after each attack, in total for at least as long as the attack. A
wait that is 20 ms longer than in these calm phases misses a target, so the verdict is valid on a busy machine too.
If root runs the tool, the server of `--spawn`, its vendor, its stores and the healthy clients have a higher
priority than other processes. The exit code is 1 if a target is missed.

`python -m bench.attack --spawn` starts a server with a fast fake vendor; `--url` attacks a running server. An
attack opens many connections and sends malformed input: use it only against a server that you own. Hosts other than
this machine require `--i-own-it`.
"""

import argparse
import asyncio
import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import uvloop

from bench.arrivals import prepare
from bench.attack.attacker import Strategies, is_loopback
from bench.attack.attacks import ATTACKS, BY_NAME, Attack
from bench.attack.healthy_clients import Window, run_healthy_clients
from bench.attack.judge import Measurement, judge
from bench.attack.report import tables, write_report
from bench.attack.run import Setting, run_attack
from bench.client import Target
from bench.deployment import APP, DeploymentSpec, read_tokens, spawned
from bench.machine import Cores, describe, raise_descriptor_limit, raise_priority
from bench.scenarios import Load, seconds
from deploy.running import Failed

Rows = list[tuple[Attack, Measurement]]

_NICENESS = 5
"""The nice value of attacks, so that they do not slow the healthy clients, vendor and stores on the same core."""
_USERS = 160
_HEALTHY_EVERY = 5
"""One in this many users belongs to the healthy clients."""
_SPAWNED = Strategies("100x20", "160x0", "1200x0")
_WARM_UP_S = 3.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.list:
        print("".join(f"{attack.name:20}{attack.sends}\n" for attack in ATTACKS), end="")
        return 0
    if sys.platform != "linux":
        parser.error("this tool needs Linux: it reads /proc and the state of TCP sockets")
    if args.url:
        _check_url(parser, args)
    elif not args.spawn:
        parser.error("one of --url, --spawn and --list is required")
    try:
        attacks = [BY_NAME[name] for name in args.only.split(",")] if args.only else list(ATTACKS)
    except KeyError as error:
        parser.error(f"--only: there is no attack {error} (--list prints the names)")
    prepare()
    cores = _cores(args)
    machine = describe(cores)
    print(machine, flush=True)
    try:
        rows = _spawned(args, attacks, cores) if args.spawn else _against_url(args, attacks)
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    print(f"\n{tables(rows)}", end="")
    _print_failures(rows)
    if args.report:
        command = f"python -m bench.attack {' '.join(arguments or sys.argv[1:])}"
        write_report(args.report, rows, machine=machine, command=command)
    return int(any(judge(measurement, attack.targets).missed for attack, measurement in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.attack", description=__doc__)
    target_group = parser.add_mutually_exclusive_group()
    target_group.add_argument("--url", help="the http:// URL of a running server, without a proxy in front of it")
    target_group.add_argument("--spawn", action="store_true", help="start a server with a fast fake vendor")
    target_group.add_argument("--list", action="store_true", help="print the attacks and exit")
    parser.add_argument("--only", metavar="NAME,…", help="run only these attacks, in this order")
    parser.add_argument(
        "--streams", type=int, default=20, metavar="N", help="healthy streams at a time (default: %(default)s)"
    )
    parser.add_argument(
        "--calm",
        type=seconds,
        default=4,
        metavar="TIME",
        help="shortest measurement before and after each attack (default: %(default)s s)",
    )
    parser.add_argument(
        "--for", dest="for_s", type=seconds, default=8, metavar="TIME", help="length of a flood (default: 8 s)"
    )
    parser.add_argument(
        "--memory",
        type=int,
        default=1024,
        metavar="MIB",
        help="stop an attack when the server has grown by this much (default: %(default)s)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write the tables between the marks in FILE; with --only, the rows of these attacks",
    )
    url_group = parser.add_argument_group("with --url")
    url_group.add_argument("--i-own-it", action="store_true", help="attack a server that is not on this machine")
    url_group.add_argument("--pid", type=int, default=0, help="the server's process id, if it runs on this machine")
    url_group.add_argument(
        "--app", default=APP, help="the app (default: %(default)s; `python -m bench.deployment` creates it)"
    )
    url_group.add_argument(
        "--token-file", type=Path, help="session tokens of at least two users, the last word of each line"
    )
    url_group.add_argument(
        "--strategy",
        default="scripted-text",
        help="a conversation strategy that answers at a steady pace (default: %(default)s)",
    )
    url_group.add_argument(
        "--speech", help="a speech strategy with long answers (default: the value of --strategy)"
    )
    return parser


def _check_url(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with an error, before anything is sent, if the target must not or cannot be attacked."""
    parts = urlsplit(args.url)
    if parts.scheme != "http" or not parts.hostname:
        parser.error("--url must be an http:// URL: the attacks connect to the server itself, not to a TLS proxy")
    if not is_loopback(parts.hostname) and not args.i_own_it:
        parser.error(f"{parts.hostname} is not this machine: confirm with --i-own-it that you own the server")
    if args.token_file is None:
        parser.error("--url requires --token-file (python -m app users make 160 --app bench --out FILE)")


def _cores(args: argparse.Namespace) -> Cores:
    if args.spawn:
        return Cores.split()
    ours = frozenset(os.sched_getaffinity(0))
    return Cores(frozenset(os.sched_getaffinity(args.pid)) if args.pid else ours, ours)


def _spawned(args: argparse.Namespace, attacks: Sequence[Attack], cores: Cores) -> Rows:
    """Run each attack on a new server, so that memory left behind by an earlier attack hides no growth."""
    models = frozenset({_SPAWNED.conversation, _SPAWNED.speech, _SPAWNED.long_speech})
    most = raise_descriptor_limit()
    rows: Rows = []
    for attack in attacks:
        spec = DeploymentSpec(models, users=_USERS, descriptors=min(attack.descriptors, most), one_address=False)
        # asyncio's own event loop starts and stops the stores; the attack itself runs on uvloop.
        with asyncio.Runner() as runner:
            context = spawned(spec, cores)
            deployment = runner.run(context.__aenter__())
            try:
                (pid,) = deployment.pids
                for measured in (pid, *deployment.vendor_pids, *deployment.store_pids):
                    raise_priority(measured)
                rows += _run_in_thread(args, [attack], deployment.target, _SPAWNED, pid)
            finally:
                runner.run(context.__aexit__(None, None, None))
    return rows


def _against_url(args: argparse.Namespace, attacks: Sequence[Attack]) -> Rows:
    tokens = read_tokens(args.token_file)
    speech = args.speech or args.strategy
    target = Target(args.url.rstrip("/"), tokens, args.app)
    return _run_in_thread(args, attacks, target, Strategies(args.strategy, speech, speech), args.pid)


def _run_in_thread(
    args: argparse.Namespace, attacks: Sequence[Attack], target: Target, strategies: Strategies, pid: int
) -> Rows:
    """Run the attacks in a thread, because Linux sets priorities per thread."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(uvloop.run, _run_attacks(args, attacks, target, strategies, pid)).result()


async def _run_attacks(
    args: argparse.Namespace, attacks: Sequence[Attack], target: Target, strategies: Strategies, pid: int
) -> Rows:
    """Run one attack after the other, while a process runs healthy clients with separate users."""
    healthy = target.tokens[::_HEALTHY_EVERY]
    attacking = [token for number, token in enumerate(target.tokens) if number % _HEALTHY_EVERY]
    if not attacking:
        raise Failed("at least two users are required, one of them for the healthy clients")
    load = Load("healthy", [strategies.conversation], at_once=args.streams, over_s=1, timeout_s=60)
    setting = Setting(
        Target(target.url, attacking, target.app_id),
        strategies,
        pid=pid,
        calm_s=args.calm,
        for_s=args.for_s,
        memory_mib=args.memory,
    )
    rows: Rows = []
    async with run_healthy_clients(Target(target.url, healthy, target.app_id), load) as clients:
        # The priority applies to this thread only: the process of the healthy clients runs already.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), max(_NICENESS, os.nice(0)))
        await asyncio.sleep(_WARM_UP_S)
        _check_healthy(await clients.window())
        for attack in attacks:
            rows.append((attack, measurement := await run_attack(attack, setting, clients)))
            print(f"{attack.name}: {judge(measurement, attack.targets)}", flush=True)
    return rows


def _check_healthy(window: Window) -> None:
    """Raise `Failed` if the healthy clients fail before any attack, because no attack could be judged then."""
    if window.failures or not (window.gap.count):
        reason = next(iter(window.failures), "no stream brought two events")
        raise Failed(f"the healthy clients fail before any attack: {reason}")


def _print_failures(rows: Rows) -> None:
    for attack, measurement in rows:
        for fault, count in measurement.under.failures.items():
            print(f"{attack.name}: {count:,} times: {fault}")
        for fault in measurement.victims_failed[:3]:
            print(f"{attack.name}: answer to another user: {fault!r}")


if __name__ == "__main__":
    sys.exit(main())
