"""Calculate what 1, 10 and 100 million daily users need, from the measured figures in the guides.

`python -m bench.sizing` reads the tables that `bench.operations` and `bench.tables` have written, and prints
the needs. Each assumption is an option: `--turns 3 --spoken 0.8`.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

from bench.figures import table
from bench.generated_section import write_between
from bench.sizing.assumptions import Assumptions
from bench.sizing.figures import Measured, read_figures
from bench.sizing.needs import Needs, needs_of
from deploy.running import Failed

MARKS = ("<!-- sizing: written by bench.sizing -->", "<!-- /sizing -->")
GUIDE = Path(__file__).parents[2] / "docs" / "operating" / "sizing.md"
TABLES = GUIDE.with_name("tables.md")
_USERS = (1_000_000, 10_000_000, 100_000_000)
_ROWS: Sequence[tuple[str, Callable[[Needs], str]]] = (
    ("turns a second", lambda need: f"{need.turns_per_s:,.0f}"),
    ("REST calls a second", lambda need: f"{need.rest_per_s:,.0f}"),
    ("streams at a time", lambda need: f"{need.streams:,.0f}"),
    ("nodes: busy cores", lambda need: _small(need.node_cores)),
    ("nodes", lambda need: f"{need.nodes:,}"),
    ("nodes: memory in all", lambda need: f"{need.node_gb:,.0f} GB"),
    ("Valkey: commands a second", lambda need: f"{need.commands_per_s:,.0f}"),
    ("Valkey: busy cores", lambda need: _small(need.valkey_cores)),
    ("Valkey: memory", lambda need: f"{_small(need.valkey_gb)} GB"),
    ("Valkey: primaries", lambda need: f"{need.primaries:,}"),
    ("PostgreSQL: transactions a second", lambda need: f"{need.transactions_per_s:,.0f}"),
    ("PostgreSQL: busy cores", lambda need: _small(need.postgres_cores)),
    ("PostgreSQL: connections without a pooler", lambda need: f"{need.connections:,}"),
    ("PostgreSQL: WAL", lambda need: f"{_small(need.wal_mb_per_s)} MB/s"),
    ("PostgreSQL: indexes in memory", lambda need: f"{need.index_gb:,.0f} GB"),
    ("PostgreSQL: growth in 30 days", lambda need: f"{_small(need.growth_tb)} TB"),
    ("PostgreSQL: turns that are kept", lambda need: f"{_small(need.kept_tb)} TB"),
    ("object store: new files a second", lambda need: f"{need.puts_per_s:,.0f}"),
    ("object store: growth in 30 days", lambda need: f"{_small(need.files_tb)} TB"),
    ("network: to clients", lambda need: f"{_small(need.to_clients_gbit)} Gbit/s"),
    ("network: from vendors", lambda need: f"{_small(need.from_vendors_gbit)} Gbit/s"),
    ("connections to vendors", lambda need: f"{need.streams:,.0f}"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    args = _parser().parse_args(given)
    assumed = Assumptions(**{each.name: getattr(args, each.name) for each in fields(Assumptions)})
    try:
        text = calculation(assumed, read_figures(args.figures, TABLES))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    print(text)
    if args.report:
        write_between(args.report, MARKS, f"\n{text}\n")
    return 0


def calculation(assumed: Assumptions, measured: Measured) -> str:
    needs = [needs_of(users, assumed, measured) for users in _USERS]
    heads = ["daily users", *(f"{users // 1_000_000} million" for users in _USERS)]
    assumptions = [
        [f"`--{each.name.replace('_', '-')}`", each.metadata["meaning"], f"{getattr(assumed, each.name):,g}"]
        for each in fields(Assumptions)
    ]
    shares = [
        [share.name, *(f"{need.shares[number].of_one:,.0%}" for need in needs)]
        for number, share in enumerate(needs[0].shares)
    ]
    return "\n".join(
        [
            "Assumptions:",
            "",
            table(["option", "", "value"], assumptions),
            "Needed in the peak hour:",
            "",
            table(heads, [[name, *map(cell, needs)] for name, cell in _ROWS]),
            "The same as a share of what one server can do:",
            "",
            table(heads, [*shares, *(_bottleneck(needs, number) for number in range(3))]),
        ]
    )


def _bottleneck(needs: Sequence[Needs], number: int) -> list[str]:
    """Return the row that names what is too small first, second or third as the load grows."""
    name = ("**first bottleneck**", "second", "third")[number]
    return [name, *(need.bottlenecks[number].name for need in needs)]


def _small(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 1 else f"{value:.2f}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.sizing", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for each in fields(Assumptions):
        parser.add_argument(
            f"--{each.name.replace('_', '-')}",
            type=float,
            default=each.default,
            metavar="N",
            help=f"{each.metadata['meaning']} (default: %(default)s)",
        )
    parser.add_argument(
        "--figures", type=Path, default=GUIDE, metavar="FILE", help="the file with measured figures"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the tables between the marks in FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
