"""The tables of the report."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.figures import table
from bench.generated_section import write_between
from bench.scaling.rounds import LEAST, Group

MARKS = ("<!-- scaling: written by bench.scaling -->", "<!-- /scaling -->")
_HEADS = (
    *("target", "load", "nodes", "streams/s", "deltas/s", "share of the core", "streams per CPU s"),
    *("deltas per CPU s", "events per delta", "Valkey commands per stream", "Valkey µs", "PostgreSQL µs", "failed"),
)
_RATIO_HEADS = ("load", "nodes", "Parley, to one node", "relay, to one relay", "Parley to relay", "linear")


def write_report(path: Path, text: str) -> None:
    write_between(path, MARKS, f"\n{text}\n")


def summary(groups: Sequence[Group], *, machine: str, command: str) -> str:
    faults = sorted({fault for group in groups for fault in group.faults})
    return "\n".join(
        [
            f"`{command}`",
            "",
            f"{machine}.",
            "",
            f"Medians of {len(groups[0].rounds)} rounds, with the lowest and the highest value:",
            "",
            table(_HEADS, [_row(group) for group in groups]),
            "Streams per second of CPU time, as ratios within each round:",
            "",
            table(_RATIO_HEADS, [_ratios(group, _relays(group, groups)) for group in _several(groups)]),
            *(f"- failed: {fault}" for fault in faults),
        ]
    )


def passed(groups: Sequence[Group]) -> bool:
    linear = all(_verdict(group, _relays(group, groups)) != "no" for group in _several(groups))
    return linear and not any(group.failed for group in groups)


def _several(groups: Sequence[Group]) -> list[Group]:
    """Return the groups of several nodes."""
    return [group for group in groups if group.target == "Parley" and group.nodes > group.alone[0].nodes]


def _relays(nodes: Group, groups: Sequence[Group]) -> Group:
    """Return the rounds of as many relays under the same load."""
    return next(
        each for each in groups if (each.target, each.load, each.nodes) == ("relay", nodes.load, nodes.nodes)
    )


def _verdict(nodes: Group, relays: Group) -> str:
    if nodes.ratio >= LEAST:
        return "within 10%"
    return "within 10% of relays" if nodes.ratio >= LEAST * relays.ratio else "no"


def _row(group: Group) -> list[str]:
    of = group.rounds
    return [
        group.target,
        group.load,
        str(group.nodes),
        _spread([each.figures.ended / each.figures.seconds for each in of]),
        _spread([each.figures.deltas / each.figures.seconds for each in of]),
        f"{median([each.figures.target_core_busy or 0 for each in of]):.0%}",
        _spread([each.streams_per_cpu_s for each in of]),
        _spread([each.deltas_per_cpu_s for each in of]),
        f"{median([each.figures.events / max(1, each.figures.deltas) for each in of]):.2f}",
        *(_of_stores(group) if group.target == "Parley" else ["-"] * 3),
        str(group.failed),
    ]


def _of_stores(group: Group) -> list[str]:
    of = group.rounds
    return [
        f"{median([each.per_stream(each.commands) for each in of]):.1f}",
        f"{median([each.per_stream(each.valkey_s) for each in of]) * 1e6:,.0f}",
        f"{median([each.per_stream(each.postgres_s) for each in of]) * 1e6:,.0f}",
    ]


def _ratios(nodes: Group, relays: Group) -> list[str]:
    return [
        nodes.load,
        str(nodes.nodes),
        _spread(nodes.ratios, digits=2),
        _spread(relays.ratios, digits=2),
        f"{nodes.ratio / max(1e-9, relays.ratio):.2f}",
        _verdict(nodes, relays),
    ]


def _spread(values: Sequence[float], *, digits: int = 0) -> str:
    """Return the median, and the lowest and highest value."""
    middle, low, high = (f"{value:,.{digits}f}" for value in (median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})"
