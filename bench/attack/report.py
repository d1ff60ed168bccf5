"""The result tables of an attack run, and writing them into the report."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.attack.attacks import ATTACKS, Attack
from bench.attack.healthy_clients import Window
from bench.attack.judge import Measurement, ServerState, judge
from bench.attack.later_runs import write_rows
from bench.figures import UNKNOWN, table
from bench.generated_section import write_between

BEGIN, END = "<!-- attacks: written by bench.attack -->", "<!-- /attacks -->"
_TABLE = "\n| attack |"
_MIB = 2**20
_CLIENT_HEADINGS = (
    "attack",
    "gap ms calm p50/p99/max, before; after",
    "gap ms under attack",
    "first event ms max",
    "/healthz ms max",
    "REST ms max",
    "upload ms calm p50, max",
    "healthy streams",
    "failed",
    "clients late ms",
    "verdict",
)
_COST_HEADINGS = (
    "attack",
    "sends",
    "seconds",
    "server CPU",
    "waited for core",
    "memory MiB before/peak/after",
    "KiB per connection",
    "descriptors before/peak/after",
    "log KiB/s",
    "connections of the attack",
)


def tables(rows: Sequence[tuple[Attack, Measurement]]) -> str:
    """Return two tables: the measurements of the healthy clients with the verdict, and the cost of each attack."""
    clients = table(_CLIENT_HEADINGS, [client_row(attack, measurement) for attack, measurement in rows])
    costs = table(_COST_HEADINGS, [_cost_row(attack, measurement) for attack, measurement in rows])
    return f"{clients}\n{costs}"


def client_row(attack: Attack, measurement: Measurement) -> list[str]:
    under = measurement.under
    return [
        attack.name,
        f"{_gaps(measurement.calm)}; {_gaps(measurement.calm_after)}",
        _gaps(under),
        f"{under.first_event.at(100):,.0f}" if under.first_event.count else UNKNOWN,
        f"{under.health.at(100):,.1f}" if under.health.count else UNKNOWN,
        f"{under.rest.at(100):,.1f}" if under.rest.count else UNKNOWN,
        f"{measurement.calm_upload_ms:,.0f}, {under.upload.at(100):,.0f}" if under.upload.count else UNKNOWN,
        f"{under.streams:,}",
        f"{under.failed + len(measurement.victims_failed):,}",
        f"{under.late_ms:,.1f}",
        str(judge(measurement, attack.targets)),
    ]


def _gaps(window: Window) -> str:
    return " / ".join(f"{window.gap.at(percent):,.0f}" for percent in (50, 99, 100))


def _cost_row(attack: Attack, measurement: Measurement) -> list[str]:
    moments = (measurement.before, measurement.peak, measurement.after)
    growth_kib = measurement.connection_kib
    log_bytes = measurement.log_bytes
    cpu = waited = UNKNOWN
    if measurement.before is not None and measurement.peak is not None:
        cpu = f"{(measurement.peak.cpu_s - measurement.before.cpu_s) / measurement.seconds:.0%}"
        waited = f"{measurement.waited:.0%}"
    return [
        attack.name,
        attack.sends,
        f"{measurement.seconds:.0f}",
        cpu,
        waited,
        _moments(moments, lambda state: state.rss_bytes / _MIB),
        UNKNOWN if growth_kib is None else f"{growth_kib:,.0f}",
        _moments(moments, lambda state: state.descriptors),
        UNKNOWN if log_bytes is None else f"{log_bytes / 1024 / measurement.seconds:,.0f}",
        str(measurement.outcomes),
    ]


def _moments(moments: Sequence[ServerState | None], figure: Callable[[ServerState], float]) -> str:
    return " / ".join(f"{figure(state):,.0f}" for state in moments if state is not None) or UNKNOWN


def write_report(path: Path, rows: Sequence[tuple[Attack, Measurement]], *, machine: str, command: str) -> None:
    """Replace the tables between the marks in `path`. A run of some attacks replaces only the rows of these."""
    names = [attack.name for attack, _ in rows]
    if len(names) < len(ATTACKS) and path.exists() and _TABLE in path.read_text():
        write_rows(path, (BEGIN, END), tables(rows), names=names, run=f"`{command}`, {machine}.")
    else:
        write_between(path, (BEGIN, END), f"\n`{command}`\n\n{machine}.\n\n{tables(rows)}\n")
