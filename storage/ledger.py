"""The ledger of assets: posts events exactly once, and checks that the assets follow from all entries."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime

from storage import asset_entries, assets
from storage.asset_entries import Entry
from storage.assets import Asset, apply
from storage.postgres import Connection, Database

_LOCK = "select status <> 'deactivated' from users where app_id = $1 and uid = $2 for no key update"


async def post(conn: Connection, app_id: str, uid: str, *, entry: Entry, now: datetime) -> bool:
    """Enter an event of a user, and change the asset. Return `False` if it is entered already.

    `conn` is in a transaction. The row of the user is locked, so entries are stored in the order in which they
    change the assets. A deactivated user has entries, but no assets.
    """
    has_assets: bool | None = await conn.fetchval(_LOCK, app_id, uid)
    assert has_assets is not None, "the user of an event exists"
    if not await asset_entries.add(conn, app_id, uid, entry=entry, now=now):
        return False
    if has_assets:
        asset = await assets.find(conn, app_id, uid, name=entry.name, subscription=entry.subscription)
        await assets.put(conn, app_id, uid, asset=apply(asset, entry, at=now))
    return True


@dataclass(frozen=True, slots=True)
class Difference:
    """An asset that is not what follows from the ledger. `None`: it does not exist."""

    app_id: str
    uid: str
    name: str
    subscription: str
    stored: Asset | None
    expected: Asset | None


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
    """Rebuild every asset from the ledger, and yield those that differ.

    The users are checked in batches, each as it was at one moment, so the server may change assets meanwhile.
    """
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
            expected[key] = apply(expected.get(key), entry, at=entered_at)
    stored = {
        (app_id, uid, asset.name, asset.subscription): asset
        for app_id, uid, asset in await assets.of_users(conn, users)
    }
    return [
        Difference(*key, stored.get(key), expected.get(key))
        for key in sorted(stored.keys() | expected.keys())
        if stored.get(key) != expected.get(key)
    ]
