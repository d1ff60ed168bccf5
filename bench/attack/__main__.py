"""Attacks against a server of your own, each judged by what healthy streams beside it see.

The same streams are measured before and after each attack, together for as long as it lasts. No wait may be 20 ms
longer than in these calm phases, so that the verdict counts on a busy machine too. As root, the server of
`--spawn`, its vendor and the healthy clients also have priority over the machine's other processes. Exit code 1: a
target is missed.

Without `--url` it starts a server, with a vendor that is fast: `python -m bench.attack --spawn`. An attack opens
many connections and sends garbage: aim it only at a server that is yours. Hosts beyond this machine need
`--i-own-it`.
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
from bench.attack.judging import Seen, judge
from bench.attack.playing import Setting, play
from bench.attack.report import tables, write_report
from bench.attack.witness import Window, witnessing
from bench.client import Target
from bench.deployment import APP, Wanted, read_tokens, spawned
from bench.machine import Cores, described, prefer, raise_descriptor_limit
from bench.scenarios import Load, seconds
from deploy.running import Failed

Rows = list[tuple[Attack, Seen]]

_NICENESS = 5
"""Attacks give way to the healthy clients, vendor and stores that share their core."""
_DESCRIPTORS = 4096
_USERS = 160
_OF_FIVE = 5
"""One user of so many is a healthy one."""
_SPAWNED = Strategies("100x20", "160x0", "1200x0")
_WARM_UP_S = 3.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.list:
        print("".join(f"{attack.name:20}{attack.sends}\n" for attack in ATTACKS), end="")
        return 0
    if sys.platform != "linux":
        parser.error("it reads /proc and the state of sockets, as Linux has them")
    if args.url:
        _check_url(parser, args)
    elif not args.spawn:
        parser.error("one of --url, --spawn and --list is required")
    try:
        attacks = [BY_NAME[name] for name in args.only.split(",")] if args.only else list(ATTACKS)
    except KeyError as error:
        parser.error(f"--only: there is no attack {error} (--list shows them)")
    prepare()
    cores = _cores(args)
    machine = described(cores)
    print(machine, flush=True)
    try:
        rows = _spawned(args, attacks, cores) if args.spawn else _elsewhere(args, attacks)
    except (Failed, OSError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    print(f"\n{tables(rows)}", end="")
    _print_failures(rows)
    if args.report:
        command = f"python -m bench.attack {' '.join(arguments or sys.argv[1:])}"
        write_report(args.report, rows, machine=machine, command=command)
    return int(any(judge(seen, attack.targets).missed for attack, seen in rows))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.attack", description=__doc__)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", help="of a server that runs, http:// and without a proxy before it")
    where.add_argument("--spawn", action="store_true", help="a server of its own, with a vendor that is fast")
    where.add_argument("--list", action="store_true", help="print the attacks and end")
    parser.add_argument("--only", metavar="NAME,…", help="these attacks, in this order")
    parser.add_argument("--streams", type=int, default=20, metavar="N", help="healthy ones at once; %(default)s")
    parser.add_argument(
        "--calm",
        type=seconds,
        default=4,
        metavar="TIME",
        help="at least, before and after each attack; %(default)s s",
    )
    parser.add_argument("--for", dest="for_s", type=seconds, default=8, metavar="TIME", help="of a flood; 8 s")
    parser.add_argument(
        "--memory", type=int, default=1024, metavar="MIB", help="growth at which an attack is stopped; %(default)s"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the tables there, between their marks")
    there = parser.add_argument_group("with --url")
    there.add_argument("--i-own-it", action="store_true", help="attack a server that is not on this machine")
    there.add_argument("--pid", type=int, default=0, help="of the server, where it runs on this machine")
    there.add_argument("--app", default=APP, help="(default: %(default)s; python -m bench.deployment makes it)")
    there.add_argument("--token-file", type=Path, help="sessions, one a line: the last word; at least two users")
    there.add_argument("--strategy", default="scripted-text", help="of conversations, with a steady pace")
    there.add_argument("--speech", help="strategy of speech; as --strategy unless given")
    return parser


def _check_url(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Refuse, before anything is sent, what this must not or cannot attack."""
    parts = urlsplit(args.url)
    if parts.scheme != "http" or not parts.hostname:
        parser.error("--url must be an http:// URL: the attacks speak to the server itself, not to what ends TLS")
    if not is_loopback(parts.hostname) and not args.i_own_it:
        parser.error(f"{parts.hostname} is not this machine: --i-own-it says that the server is yours to attack")
    if args.token_file is None:
        parser.error("--url needs --token-file (python -m app users make 160 --app bench --out FILE)")


def _cores(args: argparse.Namespace) -> Cores:
    if args.spawn:
        return Cores.parted()
    ours = frozenset(os.sched_getaffinity(0))
    return Cores(frozenset(os.sched_getaffinity(args.pid)) if args.pid else ours, ours)


def _spawned(args: argparse.Namespace, attacks: Sequence[Attack], cores: Cores) -> Rows:
    """Each attack on a new server, so that memory which an attack before it left behind hides nothing."""
    models = frozenset({_SPAWNED.conversation, _SPAWNED.speech, _SPAWNED.long_speech})
    descriptors = min(_DESCRIPTORS, raise_descriptor_limit())
    wanted = Wanted(models, users=_USERS, descriptors=descriptors, one_address=False)
    rows: Rows = []
    for attack in attacks:
        # asyncio's own loop starts and stops the processes of the stores; the attack has uvloop's.
        with asyncio.Runner() as runner:
            context = spawned(wanted, cores)
            deployment = runner.run(context.__aenter__())
            try:
                (pid,) = deployment.pids
                for measured in (pid, *deployment.vendor_pids):
                    prefer(measured)
                rows += _played(args, [attack], deployment.target, _SPAWNED, pid)
            finally:
                runner.run(context.__aexit__(None, None, None))
    return rows


def _elsewhere(args: argparse.Namespace, attacks: Sequence[Attack]) -> Rows:
    tokens = read_tokens(args.token_file)
    speech = args.speech or args.strategy
    target = Target(args.url.rstrip("/"), tokens, args.app)
    return _played(args, attacks, target, Strategies(args.strategy, speech, speech), args.pid)


def _played(
    args: argparse.Namespace, attacks: Sequence[Attack], target: Target, strategies: Strategies, pid: int
) -> Rows:
    """Each attack in turn, in a thread that can have a priority of its own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(uvloop.run, _in_turn(args, attacks, target, strategies, pid)).result()


async def _in_turn(
    args: argparse.Namespace, attacks: Sequence[Attack], target: Target, strategies: Strategies, pid: int
) -> Rows:
    """Each attack beside one process of healthy clients, whose users no attack has."""
    healthy = target.tokens[::_OF_FIVE]
    attacking = [token for number, token in enumerate(target.tokens) if number % _OF_FIVE]
    if not attacking:
        raise Failed("two users are needed at least, one of them for the healthy clients")
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
    async with witnessing(Target(target.url, healthy, target.app_id), load) as witness:
        # Linux has a priority for each thread: processes that are started later keep theirs.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        await asyncio.sleep(_WARM_UP_S)
        _check_healthy(await witness.window())
        for attack in attacks:
            rows.append((attack, seen := await play(attack, setting, witness)))
            print(f"{attack.name}: {judge(seen, attack.targets)}", flush=True)
    return rows


def _check_healthy(window: Window) -> None:
    """`Failed` where the healthy clients have no answers before any attack: nothing could be judged then."""
    if window.failures or not (window.gap.count):
        reason = next(iter(window.failures), "no stream brought two events")
        raise Failed(f"the healthy clients fail before any attack: {reason}")


def _print_failures(rows: Rows) -> None:
    for attack, seen in rows:
        for fault, count in seen.under.failures.items():
            print(f"{attack.name}: {count:,} of: {fault}")
        for fault in seen.victims_failed[:3]:
            print(f"{attack.name}: an answer beside it: {fault!r}")


if __name__ == "__main__":
    sys.exit(main())
