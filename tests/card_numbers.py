"""The numbers of cards in tests, which must be in no database and in no log of a server."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from storage.postgres.database import Connection
from vendors.sandbox.payments.stripe.cards import BY_NUMBER, INCORRECT_NUMBER

SENT: set[str] = {*BY_NUMBER, INCORRECT_NUMBER}
"""The numbers that tests may send, and those that the tests of this process have sent besides."""

_MOST_BYTES = 32 * 1024 * 1024
"""Larger tables are not searched. Only tests of large conversations have them, and a search takes 10 s."""
_WITH_ROWS = f"""
with stored as materialized (
    select pg_class.oid, format('%I.%I', nspname, relname) as name
    from pg_class join pg_namespace n on n.oid = relnamespace
    where relkind = 'r' and nspname not in ('pg_catalog', 'information_schema')
        and (pg_stat_file(pg_relation_filepath(pg_class.oid))).size > 0
)
select name from stored where pg_total_relation_size(oid) < {_MOST_BYTES} order by 1
"""
"""A new connection would need 10 ms for `pg_relation_size` of all tables."""


def record(body: Any) -> None:
    """Remember the number of the card in the body of a request."""
    match body:
        case {"card": {"number": str(number)}}:
            digits = re.sub(r"[ -]", "", number)
            if re.fullmatch(r"[0-9]{13,19}", digits):
                SENT.add(digits)


def shows_number(text: str, numbers: Iterable[str]) -> bool:
    """Return whether a number is in a text, also with spaces or hyphens."""
    digits = _without_separators(text)
    return any(number in digits for number in numbers)


async def tables_with(conn: Connection, numbers: Iterable[str]) -> list[str]:
    """Return the names of the tables that have one of the numbers in any column of any row, also as bytes."""
    names = [row[0] for row in await conn.fetch(_WITH_ROWS)]
    rows = (f"select '{name}', string_agg(t::text, E'\\n') from {name} t" for name in names)
    texts = await conn.fetch(" union all ".join(rows)) if names else []
    return [name for name, text in texts if text and _stores_number(text, numbers)]


def _stores_number(text: str, numbers: Iterable[str]) -> bool:
    """Return whether a number is in the text of rows. That of bytes is hexadecimal."""
    in_bytes = _without_separators(text).replace("20", "").replace("2d", "")
    return shows_number(text, numbers) or any(number.encode().hex() in in_bytes for number in numbers)


def _without_separators(text: str) -> str:
    return text.replace(" ", "").replace("-", "")


def logs_with(folder: Path, numbers: Iterable[str]) -> Iterator[Path]:
    """Yield the log files below a folder that have one of the numbers."""
    for path in folder.rglob("*.log"):
        if path.is_file() and shows_number(path.read_text(errors="replace"), numbers):
            yield path
