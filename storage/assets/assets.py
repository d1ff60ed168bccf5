"""Assets of users (§2.7), which follow from the entries of the ledger."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime

from storage.assets.entries import Entry, EntryKind
from storage.configs.kinds.products import AssetType
from storage.postgres.database import Connection


@dataclass(frozen=True, slots=True)
class Asset:
    """An asset of a user. The fields are columns."""

    name: str
    subscription: str
    type: AssetType
    quantity: int = 0
    """Units granted, less those taken away. It is negative if units were refunded after their use, so that the
    order of entries does not matter. For a nonconsumable, it is the number of purchases that were not refunded."""
    total_quantity: int = 0
    """Units of the current period of a subscription."""
    starts_at: datetime | None = None
    paid_ends_at: datetime | None = None
    """The end of the last period that was paid."""
    grace_ends_at: datetime | None = None
    """The end that counts instead of that of the paid period. It is later while the subscription is suspended, or
    while the platform renews it, and earlier if the platform ends it within its period."""
    ended_at: datetime | None = None
    """When a subscription ended early, because it was refunded or replaced."""
    custom_ends_at: datetime | None = None
    """The end that an operator has set."""
    platform: str = ""
    product_id: str = ""
    bp_product_id: str = ""
    receipt_id: str = ""
    origin: str = ""
    is_trial: bool = False
    renews: bool = False
    canceled_at: datetime | None = None
    """When it was cancelled at the platform."""
    refunded_at: datetime | None = None
    """When it was refunded at the platform."""

    @property
    def ends_at(self) -> datetime | None:
        """When a subscription ends, as far as it is known. `None`: it has no period."""
        return self.ended_at or self.custom_ends_at or self.grace_ends_at or self.paid_ends_at

    @property
    def units(self) -> int:
        """Units that are left."""
        return max(0, self.quantity)

    def is_valid(self, now: datetime) -> bool:
        """Return whether the user has the asset at `now`."""
        if self.type != "subscription":
            return self.units > 0
        return self.ends_at is not None and now < self.ends_at


def apply_entry(asset: Asset | None, entry: Entry, *, at: datetime) -> Asset:
    """Return the asset after an entry that was entered at `at`."""
    return _CHANGES[entry.kind](asset or Asset(entry.name, entry.subscription, entry.type), entry, at)


def _grant(asset: Asset, entry: Entry, _: datetime) -> Asset:
    granted = replace(
        asset,
        quantity=asset.quantity + _units_of(asset, entry),
        platform=entry.platform,
        product_id=entry.product_id,
        bp_product_id=entry.bp_product_id,
        receipt_id=entry.receipt_id,
        origin=entry.origin,
        refunded_at=None,
    )
    if asset.type != "subscription":
        return granted
    assert entry.ends_at is not None, "a grant of a subscription has a period"
    if asset.paid_ends_at is not None and entry.ends_at <= asset.paid_ends_at:
        return asset  # The payment of an earlier period was reported late.
    custom = asset.custom_ends_at
    return replace(
        granted,
        quantity=entry.quantity,
        total_quantity=entry.quantity,
        starts_at=entry.starts_at,
        paid_ends_at=entry.ends_at,
        grace_ends_at=entry.grace_ends_at,
        ended_at=None,
        custom_ends_at=custom if custom is not None and custom > entry.ends_at else None,
        is_trial=entry.is_trial,
        renews=entry.renews,
    )


def _refund(asset: Asset, entry: Entry, at: datetime) -> Asset:
    refunded_at = entry.happened_at or at
    if asset.type == "subscription":
        return replace(asset, ended_at=at, refunded_at=refunded_at) if _is_of_last_period(asset, entry) else asset
    return replace(asset, quantity=asset.quantity - _units_of(asset, entry), refunded_at=refunded_at)


def _restore(asset: Asset, entry: Entry, _: datetime) -> Asset:
    """Undo a refund. An end that an operator has set since the refund is kept."""
    restored = replace(asset, refunded_at=None, origin=entry.origin)
    if asset.type != "subscription":
        return replace(restored, quantity=asset.quantity + _units_of(asset, entry))
    is_refunded = asset.refunded_at is not None and _is_of_last_period(asset, entry)
    return replace(restored, ended_at=None) if is_refunded else asset


def _is_of_last_period(asset: Asset, entry: Entry) -> bool:
    return asset.paid_ends_at is None or entry.ends_at is None or entry.ends_at >= asset.paid_ends_at


def _units_of(asset: Asset, entry: Entry) -> int:
    return entry.quantity if asset.type == "consumable" else 1


def _consume(asset: Asset, entry: Entry, _: datetime) -> Asset:
    return replace(asset, quantity=asset.quantity - entry.quantity)


def _return(asset: Asset, entry: Entry, _: datetime) -> Asset:
    """Give units back. Units of a past period of a subscription are not given back to the next period."""
    return replace(asset, quantity=asset.quantity + entry.quantity) if _is_of_last_period(asset, entry) else asset


def _end(asset: Asset, _: Entry, at: datetime) -> Asset:
    return replace(asset, ended_at=at)


def _cancel(asset: Asset, entry: Entry, at: datetime) -> Asset:
    return replace(asset, canceled_at=entry.happened_at or at, renews=False, grace_ends_at=entry.ends_at)


def _resume(asset: Asset, entry: Entry, _: datetime) -> Asset:
    return replace(asset, canceled_at=None, renews=True, grace_ends_at=entry.ends_at)


def _extend(asset: Asset, entry: Entry, _: datetime) -> Asset:
    return replace(asset, grace_ends_at=entry.ends_at)


def _adjust(asset: Asset, entry: Entry, _: datetime) -> Asset:
    adjusted = replace(asset, quantity=asset.quantity + entry.quantity)
    return adjusted if entry.ends_at is None else replace(adjusted, custom_ends_at=entry.ends_at, ended_at=None)


_CHANGES: Mapping[EntryKind, Callable[[Asset, Entry, datetime], Asset]] = {
    "grant": _grant,
    "refund": _refund,
    "restore": _restore,
    "consume": _consume,
    "return": _return,
    "end": _end,
    "cancel": _cancel,
    "suspend": _extend,
    "resume": _resume,
    "extend": _extend,
    "adjust": _adjust,
}

COLUMNS: Sequence[str] = Asset.__slots__
"""The columns of `Asset`, in the order of its fields."""
_COLUMNS = ", ".join(COLUMNS)
_OF_USER = f"select {_COLUMNS} from assets where app_id = $1 and uid = $2 order by name, subscription"
_FIND = f"""
select {_COLUMNS} from assets where app_id = $1 and uid = $2 and name = $3 and subscription = $4
"""


async def of_user(conn: Connection, app_id: str, uid: str) -> list[Asset]:
    """Return the assets of a user, including those that have ended."""
    return [Asset(**row) for row in await conn.fetch(_OF_USER, app_id, uid)]


async def find(conn: Connection, app_id: str, uid: str, *, name: str, subscription: str = "") -> Asset | None:
    row = await conn.fetchrow(_FIND, app_id, uid, name, subscription)
    return None if row is None else Asset(**row)


_PUT = f"""
insert into assets (app_id, uid, {_COLUMNS})
values ($1, $2, {", ".join(f"${number}" for number in range(3, 3 + len(Asset.__slots__)))})
on conflict (app_id, uid, name, subscription) do update set
    {", ".join(f"{column} = excluded.{column}" for column in Asset.__slots__)}
"""


async def put(conn: Connection, app_id: str, uid: str, *, asset: Asset) -> None:
    await conn.execute(_PUT, app_id, uid, *astuple(asset))


_OF_USERS = f"""
select app_id, uid, {_COLUMNS} from assets
where (app_id, uid) in (select * from unnest($1::text[], $2::text[])) order by name, subscription
"""


async def of_users(conn: Connection, users: Sequence[tuple[str, str]]) -> list[tuple[str, str, Asset]]:
    """Return the assets of users, which are pairs of app and uid, with the pair of each asset's owner."""
    rows = await conn.fetch(_OF_USERS, *zip(*users, strict=True))
    return [(app_id, uid, Asset(*values)) for app_id, uid, *values in rows]
