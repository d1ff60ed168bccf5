"""The tables of the report, between marks, and the figures in them for the calculation of sizes."""

from collections.abc import Sequence
from pathlib import Path

from bench.figures import table
from bench.generated_section import write_between
from bench.operations.measuring import Cost, Memory

MARKS = ("<!-- operations: written by bench.operations -->", "<!-- /operations -->")
COLUMNS = {
    "Valkey in B": "valkey in",
    "Valkey out B": "valkey out",
    "transactions": "postgres transactions",
    "statements": "postgres statements",
    "rows": "postgres rows",
    "WAL B": "postgres wal",
    "stored B": "postgres stored",
    "files B": "objects",
    "node µs": "cpu node",
    "worker µs": "cpu worker",
    "Valkey µs": "cpu Valkey",
    "PostgreSQL µs": "cpu PostgreSQL",
}
"""The counter of each column after the names, the commands of Valkey and the bytes of a stream."""
_LEAST = 0.05
"""Commands that are rarer are background work."""


def write_report(path: Path, text: str) -> None:
    write_between(path, MARKS, f"\n{text}\n")


def summary(
    costs: Sequence[Cost], memories: Sequence[Memory], *, deltas: int, pace_ms: int, machine: str, command: str
) -> str:
    heads = ["call", "calls", "Valkey commands", *COLUMNS, "to the client B"]
    commands = [[cost.name, _listed(cost)] for cost in costs]
    memory = [[each.name, f"{each.running:,.0f}", f"{each.ended:,.0f}"] for each in memories]
    return "\n".join(
        [
            f"`{command}`",
            "",
            f"{machine}.",
            "",
            f"Each figure is for one call. The answers have {deltas} deltas, one every {pace_ms} ms.",
            "",
            table(heads, [_row(cost) for cost in costs]),
            "The commands of Valkey, with those that scripts execute:",
            "",
            table(["call", "commands"], commands),
            "Bytes in Valkey for each stream:",
            "",
            table(["stream", "while it runs", "after its end"], memory),
        ]
    )


def _row(cost: Cost) -> list[str]:
    figures = [number(cost.costs[key] * (1e6 if key.startswith("cpu ") else 1)) for key in COLUMNS.values()]
    return [cost.name, f"{cost.calls:,}", number(cost.operations), *figures, number(cost.size)]


def number(value: float) -> str:
    """Return a figure with one decimal place if it is small, and never as a negative zero."""
    return f"{max(value, 0.0):,.1f}" if value < 100 else f"{value:,.0f}"


def _listed(cost: Cost) -> str:
    shown = [f"{name} {value:.1f}" for name, value in cost.commands.items() if value >= _LEAST]
    return ", ".join(shown) or "none"
