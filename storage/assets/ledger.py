"""The ledger: posts each event exactly once, and changes the asset accordingly."""

from dataclasses import asdict, dataclass, replace
from datetime import datetime

from storage.assets import assets
from storage.assets import entries as asset_entries
from storage.assets.assets import apply_entry
from storage.assets.entries import Entry
from storage.events.outbox import AssetEvent, EventSinks
from storage.postgres.database import Connection
from streams.wire.codec import rfc3339

_LOCK = "select status <> 'deactivated' from users where app_id = $1 and uid = $2 for no key update"


async def lock(conn: Connection, app_id: str, uid: str) -> bool:
    """Lock the row of a user, and return whether the user may have assets. A deactivated user has only entries.

    Entries are then stored in the order in which they change the assets. `conn` is in a transaction.
    """
    has_assets: bool | None = await conn.fetchval(_LOCK, app_id, uid)
    assert has_assets is not None, "the user of an event exists"
    return has_assets


async def post(conn: Connection, app_id: str, uid: str, *, entry: Entry, now: datetime, sinks: EventSinks) -> bool:
    """Lock a user and post an entry, as `post_locked` does."""
    has_assets = await lock(conn, app_id, uid)
    return await post_locked(conn, app_id, uid, entry=entry, has_assets=has_assets, now=now, sinks=sinks)


async def post_locked(
    conn: Connection, app_id: str, uid: str, *, entry: Entry, has_assets: bool, now: datetime, sinks: EventSinks
) -> bool:
    """Post an entry of a locked user, and change the asset. Return `False` if it is posted already.

    A new entry is reported to `sinks`. `has_assets` is what `lock` has returned in the transaction of `conn`.
    """
    if not await asset_entries.add(conn, app_id, uid, entry=entry, now=now):
        return False
    if has_assets:
        asset = await assets.find(conn, app_id, uid, name=entry.name, subscription=entry.subscription)
        await assets.put(conn, app_id, uid, asset=apply_entry(asset, entry, at=now))
    await sinks.report(conn, app_id, _event(uid, entry), now=now)
    return True


class TooFewUnits(Exception):
    """The user has fewer units of the asset than are to be used."""


@dataclass(frozen=True, slots=True)
class Use:
    """Units of one asset of a user that are to be used."""

    key: str
    """The use, unique in the app: `task:<id>`. A repeated use changes nothing."""
    name: str
    """The asset."""
    units: int
    subscription: str = ""
    """The platform's id of the subscription, if the asset belongs to one."""


async def spend(conn: Connection, app_id: str, uid: str, *, use: Use, now: datetime, sinks: EventSinks) -> bool:
    """Use units of an asset. Return `False` if the use is posted already.

    Posts nothing if it raises `TooFewUnits`. `conn` is in a transaction.
    """
    assert use.units > 0, "a use has units"
    has_assets = await lock(conn, app_id, uid)
    if await asset_entries.find(conn, app_id, key=use.key) is not None:
        return False
    asset = await assets.find(conn, app_id, uid, name=use.name, subscription=use.subscription)
    if asset is None or asset.type == "nonconsumable" or not asset.is_valid(now) or asset.units < use.units:
        raise TooFewUnits(f"{use.units} units of {use.name} are needed")
    entry = Entry(
        use.key, "consume", asset.name, asset.type, asset.subscription,
        quantity=use.units, starts_at=asset.starts_at, ends_at=asset.paid_ends_at,
        platform=asset.platform, product_id=asset.product_id, bp_product_id=asset.bp_product_id,
    )  # fmt: skip
    return await post_locked(conn, app_id, uid, entry=entry, has_assets=has_assets, now=now, sinks=sinks)


async def give_back(conn: Connection, app_id: str, uid: str, *, key: str, now: datetime, sinks: EventSinks) -> bool:
    """Give back the units of a use that has failed.

    Return `False` if no units were used with the key, or they are given back already. The key cannot be used again.
    """
    used = await asset_entries.find(conn, app_id, key=key)
    if used is None or used.kind != "consume":
        return False
    entry = replace(used, key=f"return:{key}", kind="return")
    return await post(conn, app_id, uid, entry=entry, now=now, sinks=sinks)


def _event(uid: str, entry: Entry) -> AssetEvent:
    times = {
        name: None if moment is None else rfc3339(moment)
        for name, moment in (
            ("starts_at", entry.starts_at),
            ("ends_at", entry.ends_at),
            ("happened_at", entry.happened_at),
        )
    }
    return AssetEvent(user_id=uid, **{**asdict(entry), **times})
