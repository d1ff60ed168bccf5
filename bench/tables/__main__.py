"""Fill the tables that grow for years with generated rows, and measure sizes and statements.

`python -m bench.tables` starts a PostgreSQL of its own. The exit code is 1 if a statement of a request scans a
table, or reads more pages than it may.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import asyncpg

from bench.generated_section import write_between
from bench.machine import Cores, describe
from bench.tables.filling import FILLED, fill, prepare
from bench.tables.growth import Size, size_of
from bench.tables.plans import explaining
from bench.tables.statements import Statement, measure, statements
from deploy.running import Failed
from deploy.stores import embedded_stores
from storage.postgres.migrate import migrate

MARKS = ("<!-- tables: written by bench.tables -->", "<!-- /tables -->")
_FIRST = 0.1
"""The part of the rows after which statements are measured for the first time."""
_STATEMENTS = """\
The statements: how many pages of 8 KiB the worst of several calls has read, with {first:.0%} of the rows and with
all of them, and the median of the time in PostgreSQL:"""
_LARGE = frozenset(table.name for table in FILLED)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tables", description=__doc__)
    parser.add_argument("--attempts", type=int, default=2_000_000, metavar="N", help="rows (default: %(default)s)")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the tables between the marks in FILE")
    args = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="parley-tables-"))
    try:
        sizes, measured, took_s = asyncio.run(_measure(folder, args.attempts))
    except (Failed, OSError) as error:
        print(f"bench: {str(error) or repr(error)}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report = _report(sizes, measured, f"`python -m bench.tables --attempts {args.attempts}`", took_s)
    print(report, end="")
    if args.report:
        write_between(args.report, MARKS, f"\n{report}\n")
    return int(any(statement.faults() for statement in measured if statement.caller == "request"))


async def _measure(folder: Path, attempts: int) -> tuple[list[Size], list[Statement], float]:
    begun, measured = time.monotonic(), statements()
    async with embedded_stores(folder, durable=False) as stores:
        await migrate(stores.database_url)
        conn = await asyncpg.connect(stores.database_url)
        await prepare(conn)
        for begin, end in ((0.0, _FIRST), (_FIRST, 1.0)):
            await fill(conn, attempts=attempts, begin=begin, end=end)
            async with explaining(stores.database_url, large=_LARGE) as (explained_conn, explained):
                for statement in measured:
                    reads = await measure(explained_conn, explained, statement)
                    statement.reads = [*statement.reads, reads]
        sizes = [await size_of(conn, table) for table in FILLED]
        await conn.close()
    return sizes, measured, time.monotonic() - begun


def _report(sizes: Sequence[Size], measured: Sequence[Statement], command: str, took_s: float) -> str:
    rows = sum(size.rows for size in sizes)
    columns = ["table", "rows", "table", "indexes", "table, GiB", "indexes, GiB", "in memory, GiB"]
    parts = [
        f"{describe(Cores.split())}. {command} stored {rows:,} rows in {took_s / 60:.0f} minutes.",
        "Sizes in bytes a row, as measured, and in GiB for 100 million rows, extrapolated:",
        _table(columns, [size.line() for size in sizes]),
        "The indexes. Of those whose keys grow with the time, only the end is in use:",
        _table(
            ["index", "bytes a row", "GiB of 100 million", "in use"],
            [index.line() for size in sizes for index in size.indexes],
        ),
        _STATEMENTS.format(first=_FIRST),
        _table(["table", "statement", "of a", "pages before", "pages", "ms", ""], [one.line() for one in measured]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
