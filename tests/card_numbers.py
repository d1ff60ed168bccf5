"""The card numbers that tests have sent to a server, which must be neither in its database nor in its log."""

import re
from collections.abc import Iterable
from typing import Any

from storage.postgres import Connection

SENT: set[str] = set()
"""The numbers that the tests of this process have sent."""

_TABLES = """
select format('%I.%I', schemaname, tablename) from pg_tables
where schemaname not in ('pg_catalog', 'information_schema') order by 1
"""


def record(body: Any) -> None:
    """Remember the number of the card in the body of a request."""
    match body:
        case {"card": {"number": str(number)}}:
            digits = re.sub(r"[ -]", "", number)
            if re.fullmatch(r"[0-9]{13,19}", digits):
                SENT.add(digits)


def pattern_of(numbers: Iterable[str]) -> str:
    """Return a regular expression for these numbers, also with spaces or hyphens, and for their bytes as hex."""
    texts = ["[ -]?".join(number) for number in sorted(numbers)]
    bytes_ = ["(20|2d)?".join(f"3{digit}" for digit in number) for number in sorted(numbers)]
    return "|".join([*texts, *bytes_])


def shows_number(text: str, numbers: Iterable[str]) -> bool:
    return bool(pattern := pattern_of(numbers)) and re.search(pattern, text) is not None


async def tables_with(conn: Connection, numbers: Iterable[str]) -> list[str]:
    """Return the names of the tables that have one of the numbers in any column of any row."""
    if not (pattern := pattern_of(numbers)):
        return []
    names = [row[0] for row in await conn.fetch(_TABLES)]
    found = (f"select '{name}' where exists (select from {name} t where t::text ~ $1)" for name in names)  # noqa: S608
    return [row[0] for row in await conn.fetch(" union all ".join(found), pattern)]
