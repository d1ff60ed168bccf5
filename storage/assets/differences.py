"""Differences between stored assets and the entries of the ledger."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass

from storage.assets import assets, quotas, share_groups
from storage.assets import entries as asset_entries
from storage.assets.assets import Asset, apply_entry
from storage.postgres.database import Connection, Database
from storage.withdrawals import withdrawals

_CHECKS = (withdrawals.DIFFERENCES, share_groups.DIFFERENCES, quotas.DIFFERENCES)
"""Statements that select the fields of differences, at most `$1` of them."""
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Difference:
    app_id: str
    uid: str
    subject: str
    """What differs: an asset, a withdrawal, a share group or the use of a quota."""
    problem: str
    """What is stored, and what should be."""


_USERS = """
(select distinct app_id, uid from asset_entries where (app_id, uid) > ($1, $2) order by 1, 2 limit $3)
union
(select distinct app_id, uid from assets where (app_id, uid) > ($1, $2) order by 1, 2 limit $3)
order by 1, 2 limit $3
"""
_ACTIVE = """
select app_id, uid from users
where (app_id, uid) in (select * from unnest($1::text[], $2::text[])) and status <> 'deactivated'
"""


async def find_differences(database: Database, *, batch_size: int = 500) -> AsyncGenerator[Difference]:
    """Rebuild every asset, reservation and quota from its entries, and yield the differences."""
    async with aclosing(_differing_assets(database, batch_size=batch_size)) as differing:
        async for difference in differing:
            yield difference
    for check in _CHECKS:
        async with database.connection() as conn:
            rows = await conn.fetch(check, _MOST)
        for row in rows:
            yield Difference(*row)


async def _differing_assets(database: Database, *, batch_size: int) -> AsyncGenerator[Difference]:
    """Check the users in batches. Each batch reads a snapshot, because the server may change assets meanwhile."""
    last = ("", "")
    while True:
        async with database.connection() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
            users = [tuple(row) for row in await conn.fetch(_USERS, *last, batch_size)]
            differences = await _differences_of(conn, users) if users else []
        for difference in differences:
            yield difference
        if len(users) < batch_size:
            return
        last = users[-1]


async def _differences_of(conn: Connection, users: Sequence[tuple[str, str]]) -> list[Difference]:
    active = {tuple(row) for row in await conn.fetch(_ACTIVE, *zip(*users, strict=True))}
    expected: dict[tuple[str, str, str, str], Asset] = {}
    for app_id, uid, entered_at, entry in await asset_entries.of_users(conn, users):
        if (app_id, uid) in active:
            key = (app_id, uid, entry.name, entry.subscription)
            expected[key] = apply_entry(expected.get(key), entry, at=entered_at)
    stored = {
        (app_id, uid, asset.name, asset.subscription): asset
        for app_id, uid, asset in await assets.of_users(conn, users)
    }
    return [
        Difference(app_id, uid, f"{name} ({subscription})" if subscription else name, problem)
        for app_id, uid, name, subscription in sorted(stored.keys() | expected.keys())
        if (problem := _problem(*(state.get((app_id, uid, name, subscription)) for state in (stored, expected))))
    ]


def _problem(stored: Asset | None, expected: Asset | None) -> str:
    """Return how a stored asset differs from the expected one, or an empty text. `None`: there is no such asset."""
    if stored is None:
        return "is missing"
    if expected is None:
        return "has no entry"
    right = asdict(expected)
    return ", ".join(
        f"{name} is {value}, should be {right[name]}"
        for name, value in asdict(stored).items()
        if value != right[name]
    )
