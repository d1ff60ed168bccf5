"""Quotas of calls to vendors: free units of a day, and units of an asset that the ledger uses (§4.16, §4.20)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from storage.accounts import users
from storage.assets import assets, ledger
from storage.assets.assets import Asset
from storage.assets.ledger import Use
from storage.configs.kinds.quota import Quota
from storage.events.outbox import EventSinks
from storage.postgres.database import Connection
from streams.wire.errors import ServiceError

_NEVER = datetime.max.replace(tzinfo=UTC)


class QuotaUsed(ServiceError):
    """The quota of the user is used up. `Retry-After` is sent if the free units of another day are enough."""

    error_type = "ai_free_limit"
    status = 429


@dataclass(frozen=True, slots=True)
class Counts:
    """The units of a user. Without a quota, both are 0."""

    left: int = 0
    total: int = 0
    """The units of the current period: the free units of the day, and the granted units of the asset."""


_ADD = """
insert into quota_uses (app_id, key, uid, asset, free_units, entry_keys, used_at)
values ($1, $2, $3, $4, $5, $6, $7)
"""
_EXISTS = "select exists (select from quota_uses where app_id = $1 and key = $2)"


async def use_units(
    conn: Connection, app_id: str, uid: str, *, key: str, quota: Quota | None, now: datetime, sinks: EventSinks
) -> bool:
    """Use the units of one call. Return `False` if they were used with this key already.

    Raises `QuotaUsed`, and uses nothing, if too few units are left. `key` is unique in the app: `prediction:<id>`.
    Free units are used first, then those of the subscriptions that end first. `conn` is in a transaction.
    """
    await users.lock(conn, app_id, uid)
    if await conn.fetchval(_EXISTS, app_id, key):
        return False
    if quota is None:
        return True
    free = min(await _free_left(conn, app_id, uid, quota=quota, now=now), quota.amount)
    uses = _uses(await _valid_assets(conn, app_id, uid, name=quota.asset, now=now), quota.amount - free, key=key)
    if free + sum(spent.units for spent in uses) < quota.amount:
        raise _used_up(quota, now=now)
    for spent in uses:
        await ledger.spend(conn, app_id, uid, use=spent, now=now, sinks=sinks)
    await conn.execute(_ADD, app_id, key, uid, quota.asset, free, [spent.key for spent in uses], now)
    return True


DIFFERENCES = """
select app_id, uid, 'quota of ' || use.key, case
    when missing > 0 then 'has no entry'
    when returned_at is null then 'is not returned, but its entries are'
    when returns = 0 then 'is returned, but its entries are not'
    else 'is returned, but its entries are' end
from quota_uses use, lateral (
    select count(*) filter (where used.entry_id is null) as missing, count(back.entry_id) as returns
    from unnest(use.entry_keys) wanted(key)
    left join asset_entries used on used.app_id = use.app_id and used.key = wanted.key and used.kind = 'consume'
    left join asset_entries back on back.app_id = use.app_id and back.key = 'return:' || wanted.key) found
where missing > 0 or returns <> case when returned_at is null then 0 else cardinality(entry_keys) end
order by app_id, use.key limit $1
"""
"""Uses of quotas that differ from the entries of the ledger."""
_RETURN = """
update quota_uses set returned_at = $3 where app_id = $1 and key = $2 and returned_at is null returning entry_keys
"""


async def give_back(conn: Connection, app_id: str, uid: str, *, key: str, now: datetime, sinks: EventSinks) -> bool:
    """Give back the units of a call that has failed or was canceled.

    Return `False` if no units were used with the key, or they are given back already. The key cannot be used again.
    Free units are given back to the day on which they were used. `conn` is in a transaction.
    """
    await users.lock(conn, app_id, uid)
    entry_keys: list[str] | None = await conn.fetchval(_RETURN, app_id, key, now)
    for entry_key in entry_keys or ():
        await ledger.give_back(conn, app_id, uid, key=entry_key, now=now, sinks=sinks)
    return entry_keys is not None


_USED = """
select coalesce(sum(case kind when 'consume' then quantity else -quantity end), 0)::bigint from asset_entries
where app_id = $1 and uid = $2 and name = $3 and subscription = '' and kind in ('consume', 'return')
"""


async def counts(conn: Connection, app_id: str, uid: str, *, quota: Quota | None, now: datetime) -> Counts:
    if quota is None:
        return Counts()
    valid = await _valid_assets(conn, app_id, uid, name=quota.asset, now=now)
    used: int = await conn.fetchval(_USED, app_id, uid, quota.asset)
    units = sum(asset.units for asset in valid)
    granted = used + sum(
        asset.total_quantity if asset.type == "subscription" else asset.units
        for asset in await assets.of_user(conn, app_id, uid)
        if asset.name == quota.asset and asset.type != "nonconsumable" and _counts(asset, now)
    )
    free = await _free_left(conn, app_id, uid, quota=quota, now=now)
    return Counts(left=free + units, total=quota.free_per_day + granted)


def _counts(asset: Asset, now: datetime) -> bool:
    return asset.type != "subscription" or asset.is_valid(now)


async def _valid_assets(conn: Connection, app_id: str, uid: str, *, name: str, now: datetime) -> list[Asset]:
    """Return the assets of this name that have units, in the order in which they are used."""
    return sorted(
        (
            asset
            for asset in await assets.of_user(conn, app_id, uid)
            if asset.name == name and asset.type != "nonconsumable" and asset.is_valid(now) and asset.units > 0
        ),
        key=lambda asset: (asset.ends_at if asset.type == "subscription" else None) or _NEVER,
    )


def _uses(valid: Sequence[Asset], wanted: int, *, key: str) -> list[Use]:
    """Return the units to use of each asset. Their sum is less than `wanted` if too few are left."""
    uses = []
    for asset in valid:
        units = min(asset.units, wanted)
        if units > 0:
            name = f"{key}/{asset.subscription}" if asset.subscription else key
            uses.append(Use(name, asset.name, units, asset.subscription))
        wanted -= units
    return uses


_FREE_USED = """
select coalesce(sum(free_units), 0)::bigint from quota_uses
where app_id = $1 and uid = $2 and asset = $3 and used_at >= $4 and used_at < $5 and returned_at is null
"""


async def _free_left(conn: Connection, app_id: str, uid: str, *, quota: Quota, now: datetime) -> int:
    if not quota.free_per_day:
        return 0
    midnight = _midnight(now)
    used: int = await conn.fetchval(_FREE_USED, app_id, uid, quota.asset, midnight, midnight + timedelta(days=1))
    return max(0, quota.free_per_day - used)


def _used_up(quota: Quota, *, now: datetime) -> QuotaUsed:
    """Return the error. Its `retry_after_s` is set if the free units of a day are enough."""
    left_s = (_midnight(now) + timedelta(days=1) - now).total_seconds()
    return QuotaUsed(
        f"too few units of {quota.asset} are left: {quota.amount} are needed",
        retry_after_s=left_s if quota.free_per_day >= quota.amount else None,
    )


def _midnight(now: datetime) -> datetime:
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
