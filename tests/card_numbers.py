"""The numbers of cards in tests, which must be in no database and in no log of a server."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from storage.postgres import Connection
from vendors.sandbox.payments.stripe_cards import BY_NUMBER, INCORRECT_NUMBER

SENT: set[str] = {*BY_NUMBER, INCORRECT_NUMBER}
"""The numbers that tests may send, and those that the tests of this process have sent besides."""

_MOST_BYTES = 32 * 1024 * 1024
"""Larger tables are not searched. Only tests of large conversations have them, and a search takes 10 s."""
_WITH_ROWS = f"""
select format('%I.%I', nspname, relname) from pg_class join pg_namespace n on n.oid = relnamespace
where relkind = 'r' and nspname not in ('pg_catalog', 'information_schema') and pg_relation_size(pg_class.oid) > 0
    and pg_total_relation_size(pg_class.oid) < {_MOST_BYTES}
order by 1
"""  # noqa: S608 - a constant
_WITHOUT_SEPARATORS = "replace(replace(t::text, ' ', ''), '-', '')"
_WITHOUT_HEX_SEPARATORS = f"replace(replace({_WITHOUT_SEPARATORS}, '20', ''), '2d', '')"


def record(body: Any) -> None:
    """Remember the number of the card in the body of a request."""
    match body:
        case {"card": {"number": str(number)}}:
            digits = re.sub(r"[ -]", "", number)
            if re.fullmatch(r"[0-9]{13,19}", digits):
                SENT.add(digits)


def shows_number(text: str, numbers: Iterable[str]) -> bool:
    """Return whether a number is in a text, also with spaces or hyphens."""
    digits = text.replace(" ", "").replace("-", "")
    return any(number in digits for number in numbers)


async def tables_with(conn: Connection, numbers: Iterable[str]) -> list[str]:
    """Return the names of the tables that have one of the numbers in any column of any row, also as bytes."""
    patterns = [f"%{form}%" for number in numbers for form in (number, number.encode().hex())]
    names = [row[0] for row in await conn.fetch(_WITH_ROWS)]
    found = (
        f"select '{name}' where exists (select from {name} t where {_WITHOUT_SEPARATORS} like any($1)"  # noqa: S608
        f" or {_WITHOUT_HEX_SEPARATORS} like any($1))"
        for name in names
    )
    return [row[0] for row in await conn.fetch(" union all ".join(found), patterns)] if names else []


def logs_with(folder: Path, numbers: Iterable[str]) -> Iterator[Path]:
    """Yield the log files below a folder that have one of the numbers."""
    for path in folder.rglob("*.log"):
        if path.is_file() and shows_number(path.read_text(errors="replace"), numbers):
            yield path
