"""Tables with a partition for each month: partitions are added ahead of time, and old ones are dropped as a whole.

Dropping a partition takes milliseconds and leaves no dead rows behind, however many rows it has. Real time decides
to which partition a row belongs, because a partition has rows of all apps.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from storage.postgres.database import Connection, Database

MONTHS_AHEAD = 3
"""How many months after the current one have partitions, so that a missing job is noticed long before they end."""
_LOCK_TIMEOUT = "set local lock_timeout = '2s'"
"""Partitions are added and detached under a lock of the table. While a statement waits for it, others wait behind
it. The job is repeated an hour later."""


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A table, and how its partition key relates to time. Partitions are named `TABLE_YEAR_MONTH`."""

    name: str
    key: str
    encode: Callable[[datetime], str]
    """Returns the smallest key of a time, as text."""
    decode: Callable[[str], datetime]
    """Returns the time of a bound."""
    guard: str = ""
    """A statement for each new partition."""

    def partition_of(self, month: datetime) -> str:
        return f"{self.name}_{month:%Y_%m}"


def _id_of(time: datetime) -> str:
    """Return the first digits of the ids from `new_id` since a time."""
    return f"{int(time.timestamp()) * 1000:012x}"


def _time_of(bound: str) -> datetime:
    return datetime.fromtimestamp(int(bound, 16) / 1000, UTC)


ATTEMPTS = Partitioned("attempts", "stream_id", _id_of, _time_of)
AUDIT = Partitioned(
    "audit",
    "changed_at",
    datetime.isoformat,
    lambda bound: datetime.fromisoformat(bound).astimezone(UTC),
    # The trigger for rows belongs to the table, and PostgreSQL adds it to each partition.
    guard="create trigger audit_is_append_only before truncate on {partition}"
    " for each statement execute function refuse_audit_change()",
)
PARTITIONED = (ATTEMPTS, AUDIT)
"""Tables that only grow, and whose unique constraints contain the partition key. docs/operating/tables.md says why
the others are not partitioned."""


class Partition(NamedTuple):
    name: str
    begins_at: datetime | None
    """`None`: it is the first one."""
    ends_at: datetime | None
    """`None`: it is the default partition, which has the rows that no other one takes."""


_PARTITIONS = """
select c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bound
from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = to_regclass($1)
"""
_BOUND = re.compile(r"FOR VALUES FROM \((?:MINVALUE|'(?P<begin>[^']+)')\) TO \('(?P<end>[^']+)'\)")


async def partitions(conn: Connection, table: Partitioned) -> list[Partition]:
    """Return the partitions of a table, the oldest first and the default partition last."""
    found = [
        _partition(table, row["name"], row["bound"])
        for row in await conn.fetch(_PARTITIONS, f"public.{table.name}")
    ]
    return sorted(found, key=lambda partition: (partition.ends_at is None, partition.ends_at))


def _partition(table: Partitioned, name: str, bound: str) -> Partition:
    match = _BOUND.fullmatch(bound)
    if match is None:
        return Partition(name, None, None)
    begin = match["begin"]
    return Partition(name, None if begin is None else table.decode(begin), table.decode(match["end"]))


async def covered_until(conn: Connection, table: Partitioned) -> datetime:
    """Return the time from which on rows are stored in the default partition."""
    return max(ends_at for _, _, ends_at in await partitions(conn, table) if ends_at is not None)


async def default_is_used(conn: Connection, table: Partitioned) -> bool:
    """Return whether the default partition has rows."""
    used: bool = await conn.fetchval(f"select exists (select from {table.name}_default)")
    return used


async def make_ahead(database: Database, table: Partitioned, *, now: datetime) -> list[str]:
    """Add the partitions that are missing until `MONTHS_AHEAD` months after the current one. Return their names.

    Each is added in a transaction of its own. Rows of its month that are in the default partition are moved to it.
    """
    made: list[str] = []
    last = _later(now, MONTHS_AHEAD + 1)
    while True:
        async with database.transaction() as conn:
            await conn.execute("select pg_advisory_xact_lock(37, hashtext($1))", table.name)
            begin = await covered_until(conn, table)
            if begin >= last:
                return made
            await conn.execute(_LOCK_TIMEOUT)
            await _add(conn, table, begin=begin)
            made.append(table.partition_of(begin))


def _later(time: datetime, months: int) -> datetime:
    """Return the beginning of a month, `months` after that of `time`."""
    years, month = divmod(time.month - 1 + months, 12)
    return datetime(time.year + years, month + 1, 1, tzinfo=UTC)


async def _add(conn: Connection, table: Partitioned, *, begin: datetime) -> None:
    name, partition = table.name, table.partition_of(begin)
    first, end = (f"'{table.encode(time)}'" for time in (begin, _later(begin, 1)))
    await conn.execute(f"create table {partition} (like {name} including defaults including constraints)")
    misplaced = f"from {name}_default where {table.key} >= {first} and {table.key} < {end}"
    if await conn.fetchval(f"select exists (select {misplaced})"):
        # Triggers may forbid that rows are deleted, but these stay in the table.
        await conn.execute(f"alter table {name}_default disable trigger user")
        await conn.execute(f"with moved as (delete {misplaced} returning *) insert into {partition} table moved")
        await conn.execute(f"alter table {name}_default enable trigger user")
    await conn.execute(f"alter table {name} attach partition {partition} for values from ({first}) to ({end})")
    if table.guard:
        await conn.execute(table.guard.format(partition=partition))


_EXPIRED = "its rows have expired"
"""The comment on a partition that is to be dropped. Others may have been detached by an operator, to be kept."""
_DETACHED = """
select relname from pg_class
where relnamespace = 'public'::regnamespace and relkind = 'r' and not relispartition and relname ~ $1
    and obj_description(oid, 'pg_class') = $2
order by relname
"""


async def drop_expired(database: Database, table: Partitioned, *, kept: timedelta, now: datetime) -> list[str]:
    """Drop the partitions whose newest rows are older than `kept`. Return their names.

    A partition is detached first, which only changes the catalog, and dropped without a lock of the table. One that
    was detached by a call that was interrupted then is dropped, too, and one that an operator has detached is not.
    """
    async with database.connection() as conn:
        expired = [
            partition.name
            for partition in await partitions(conn, table)
            if partition.ends_at is not None and partition.ends_at <= now - kept
        ]
    for name in expired:
        async with database.transaction() as conn:
            await conn.execute(_LOCK_TIMEOUT)
            await conn.execute(f"alter table {table.name} detach partition {name}")
            await conn.execute(f"comment on table {name} is '{_EXPIRED}'")
    dropped = []
    async with database.connection() as conn:
        for row in await conn.fetch(_DETACHED, rf"^{table.name}_(first|\d{{4}}_\d{{2}})$", _EXPIRED):
            await conn.execute(f"drop table {row['relname']}")
            dropped.append(row["relname"])
    return dropped
