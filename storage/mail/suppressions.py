"""Addresses that get no emails of an app's strategies, because their owners or operators have declined them.

Emails about accounts, such as codes, are still sent.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from storage.operators.audit import Origin, Subject, record_change
from storage.postgres.database import Connection

Reason = Literal["unsubscribed", "operator"]


@dataclass(frozen=True, slots=True)
class Suppression:
    address: str
    """A normalized address."""
    strategy: str
    """The name of a config of kind `mail`. Empty: all strategies."""
    reason: Reason
    created_at: datetime


_ADD = """
insert into suppressions (app_id, address, strategy, reason, created_at) values ($1, $2, $3, $4, $5)
on conflict do nothing returning true
"""


async def unsubscribe(conn: Connection, app_id: str, *, address: str, strategy: str, now: datetime) -> bool:
    """Send no more emails of a strategy to an address. Return false if the address was already suppressed."""
    return await conn.fetchval(_ADD, app_id, address, strategy, "unsubscribed", now) is not None


async def add(
    conn: Connection, app_id: str, *, address: str, strategy: str, subject: str, now: datetime, origin: Origin
) -> None:
    """Suppress an address for an operator. `subject` stands for it in the audit log. `conn` is in a transaction."""
    if await conn.fetchval(_ADD, app_id, address, strategy, "operator", now) is not None:
        of = Subject(app_id, "suppression", subject)
        await record_change(conn, origin, action="suppression.add", subject=of, after={"strategy": strategy})


_REMOVE = "delete from suppressions where app_id = $1 and address = $2 and strategy = $3 returning reason"


async def remove(
    conn: Connection, app_id: str, *, address: str, strategy: str, subject: str, origin: Origin
) -> bool:
    """Send emails of a strategy to an address again. Return false if there is no such row. `conn`: see `add`."""
    reason = await conn.fetchval(_REMOVE, app_id, address, strategy)
    if reason is None:
        return False
    before = {"strategy": strategy, "reason": reason}
    of = Subject(app_id, "suppression", subject)
    await record_change(conn, origin, action="suppression.remove", subject=of, before=before)
    return True


class Position(NamedTuple):
    """The place of an entry in the list."""

    address: str
    strategy: str


_LIST = """
select address, strategy, reason, created_at from suppressions
where app_id = $1 and ($2::text is null or address = $2)
and ($3::text is null or (address, strategy) > ($3, $4)) order by address, strategy limit $5
"""


async def listed(
    conn: Connection, app_id: str, *, address: str | None, after: Position | None, size: int
) -> list[Suppression]:
    """Return entries in the order of addresses; with `after`, those that follow it."""
    rows = await conn.fetch(_LIST, app_id, address, *(after or (None, None)), size)
    return [Suppression(**row) for row in rows]
