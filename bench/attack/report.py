"""The tables of an attack run, as Markdown, and their place in the report."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.attack.attacks import Attack
from bench.attack.judging import Held, Seen, judge
from bench.attack.witness import Window
from bench.figures import UNKNOWN, table
from bench.marks import write_between

BEGIN, END = "<!-- attacks: written by bench.attack -->", "<!-- /attacks -->"
_MIB = 2**20
_SEEN_HEADINGS = (
    "attack",
    "gap ms calm p50/p99/max, before; after",
    "gap ms under attack",
    "first event ms max",
    "/healthz ms max",
    "REST ms max",
    "healthy streams",
    "failed",
    "witness late ms",
    "verdict",
)
_COST_HEADINGS = (
    "attack",
    "sends",
    "for s",
    "server CPU",
    "kept off its core",
    "memory MiB before/peak/after",
    "KiB by connection",
    "descriptors before/peak/after",
    "log KiB/s",
    "connections of the attack",
)


def tables(rows: Sequence[tuple[Attack, Seen]]) -> str:
    """What healthy clients saw with the verdict, and what each attack cost."""
    seen = table(_SEEN_HEADINGS, [seen_row(attack, found) for attack, found in rows])
    costs = table(_COST_HEADINGS, [_cost_row(attack, found) for attack, found in rows])
    return f"{seen}\n{costs}"


def seen_row(attack: Attack, seen: Seen) -> list[str]:
    under = seen.under
    return [
        attack.name,
        f"{_gaps(seen.calm)}; {_gaps(seen.calm_after)}",
        _gaps(under),
        f"{under.first_event.at(100):,.0f}" if under.first_event.count else UNKNOWN,
        f"{under.health.at(100):,.1f}" if under.health.count else UNKNOWN,
        f"{under.rest.at(100):,.1f}" if under.rest.count else UNKNOWN,
        f"{under.streams:,}",
        f"{under.failed + len(seen.victims_failed):,}",
        f"{under.late_ms:,.1f}",
        str(judge(seen, attack.targets)),
    ]


def _gaps(window: Window) -> str:
    return " / ".join(f"{window.gap.at(percent):,.0f}" for percent in (50, 99, 100))


def _cost_row(attack: Attack, seen: Seen) -> list[str]:
    moments = (seen.before, seen.peak, seen.after)
    each_kib = seen.connection_kib
    log_bytes = seen.log_bytes
    cpu = waited = UNKNOWN
    if seen.before is not None and seen.peak is not None:
        cpu = f"{(seen.peak.cpu_s - seen.before.cpu_s) / seen.seconds:.0%}"
        waited = f"{seen.waited:.0%}"
    return [
        attack.name,
        attack.sends,
        f"{seen.seconds:.0f}",
        cpu,
        waited,
        _moments(moments, lambda held: held.rss_bytes / _MIB),
        UNKNOWN if each_kib is None else f"{each_kib:,.0f}",
        _moments(moments, lambda held: held.descriptors),
        UNKNOWN if log_bytes is None else f"{log_bytes / 1024 / seen.seconds:,.0f}",
        str(seen.outcomes),
    ]


def _moments(moments: Sequence[Held | None], figure: Callable[[Held], float]) -> str:
    return " / ".join(f"{figure(held):,.0f}" for held in moments if held is not None) or UNKNOWN


def write_report(path: Path, rows: Sequence[tuple[Attack, Seen]], *, machine: str, command: str) -> None:
    """Put the tables into `path`, in place of those between the marks."""
    write_between(path, (BEGIN, END), f"\n`{command}`\n\n{machine}.\n\n{tables(rows)}\n")
