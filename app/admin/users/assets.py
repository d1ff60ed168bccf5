"""Admin API of assets: what a user owns, the ledger behind it, and changes by operators."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import Field

from app.admin.area import FOR_EDITORS
from app.admin.reasons import origin_with_reason
from app.admin.users.users import USER_ERRORS, UserPath, user_of
from app.assets.assets import AssetList, assets_of
from app.assets.grants import grant_of
from app.http.paging import Page, SortedQuery, page_of
from app.http.rows import idempotency
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path, Query
from app.http.rows.transactions import Transaction
from storage.accounts import users
from storage.assets import assets, ledger
from storage.assets import entries as asset_entries
from storage.assets.assets import Asset, apply_entry
from storage.assets.entries import Entry, StoredEntry
from storage.configs.kinds.products import MAX_QUANTITY, PRODUCTS, Product
from storage.operators import audit
from storage.operators.audit import Action, Subject
from storage.postgres.database import Connection
from streams.wire.codec import rfc3339
from streams.wire.errors import ConfigInvalid, InvalidParameter, ItemNotFound, listed
from streams.wire.model import Model, Moment, QueryInt


class AssetNotFound(ItemNotFound):
    """The user has no such asset."""

    def __init__(self, name: str) -> None:
        super().__init__(f"asset {listed([name])} does not exist")


class AssetGrant(Model):
    product: str = Field(max_length=128)
    """Name of a config of kind `products`."""


class AssetAdjustment(Model):
    name: str = Field(max_length=64)
    """The asset."""
    subscription: str = Field(default="", max_length=128)
    """The platform's id of the subscription, if the asset belongs to one."""
    quantity: int = Field(default=0, ge=-MAX_QUANTITY, le=MAX_QUANTITY)
    """Units to add; a negative number removes units. The remaining units are never below zero."""
    ends_at: Moment | None = None
    """When the subscription is to end."""


class AdjustedAssets(AssetList):
    """The assets of the user, and how many units were added or removed."""

    changed: int
    """The units that were added, or removed if negative: at most those that the user had."""


class EntryView(Model):
    entry_id: int
    key: str
    """The event."""
    kind: str
    """`grant`, `refund`, `restore`, `consume`, `return`, `end`, `cancel`, `suspend`, `resume`, `extend` or
    `adjust`."""
    name: str
    subscription: str
    quantity: int
    starts_at: str
    ends_at: str
    grace_ends_at: str
    """Of a grant: until when the subscription lasts because its next period is billed after `ends_at`."""
    bp_product_id: str
    receipt_id: str
    origin: str
    channel: str
    """The first source of the event: `webhook`, `client`, `reconciliation`, `operator` or `server`."""
    entered_at: str


class EntryList(Page[int]):
    """A page of the ledger entries."""

    entries: list[EntryView]


async def read_assets(call: Call, path: Path[UserPath]) -> AssetList:
    """List the assets of a user."""
    async with call.services.database.connection() as conn:
        await user_of(call, conn, path)
        now = call.services.clock.now(path.app)
        return AssetList(assets=await assets_of(conn, path.app, path.user_id, now=now))


async def list_entries(call: Call, path: Path[UserPath], query: Query[SortedQuery[QueryInt]]) -> EntryList:
    """List the ledger entries of a user, who may be deactivated.

    The newest comes first.
    """
    async with call.services.database.connection() as conn:
        await user_of(call, conn, path, find=users.find_any)
        found = await asset_entries.page(
            conn,
            path.app,
            path.user_id,
            oldest_first=query.oldest_first,
            before=query.before,
            size=query.size + 1,
        )
    page, further = page_of(found, query.size, lambda stored: stored.entry_id)
    return EntryList(next=further, entries=[entry_view(stored) for stored in page])


async def grant(call: Call, transaction: Transaction, path: Path[UserPath], body: Body[AssetGrant]) -> AssetList:
    """Grant a product to a user.

    A subscription gets one period from now and does not renew. The headers `X-Parley-Reason` and `Idempotency-Key`
    are required: a repeated request with the same key grants once.
    """
    origin_with_reason(call)
    idempotency.required_key(call.request)
    now = call.services.clock.now(path.app)
    async with transaction.begin() as conn:
        await user_of(call, conn, path, find=users.lock)
        product = call.services.configs.required(PRODUCTS, path.app, body.product).value
        entry = partial(_granted, product, body.product, now)
        await _enter(call, conn, path, action="asset.grant", change=body, entry=entry, now=now)
        return transaction.answer(AssetList(assets=await assets_of(conn, path.app, path.user_id, now=now)))


async def adjust(
    call: Call, transaction: Transaction, path: Path[UserPath], body: Body[AssetAdjustment]
) -> AdjustedAssets:
    """Change the units of a user's asset, or the end of a subscription.

    The headers `X-Parley-Reason` and `Idempotency-Key` are required: a repeated request with the same key changes
    the asset once.
    """
    origin_with_reason(call)
    idempotency.required_key(call.request)
    now = call.services.clock.now(path.app)
    async with transaction.begin() as conn:
        await user_of(call, conn, path, find=users.lock)
        asset = await assets.find(conn, path.app, path.user_id, name=body.name, subscription=body.subscription)
        if asset is None:
            raise AssetNotFound(body.name)
        if (body.ends_at is not None) == bool(body.quantity):
            raise InvalidParameter("exactly one of quantity and ends_at is required")
        if body.ends_at is not None and asset.type != "subscription":
            raise InvalidParameter("ends_at is only for subscriptions")
        if body.quantity and asset.type == "nonconsumable":
            raise InvalidParameter("quantity is not for nonconsumables")
        changed = max(body.quantity, -asset.units)
        entry = partial(
            Entry, kind="adjust", name=asset.name, type=asset.type, subscription=asset.subscription,
            quantity=changed, ends_at=body.ends_at, origin="admin", channel="operator",
        )  # fmt: skip
        await _enter(call, conn, path, action="asset.adjust", change=body, entry=entry, now=now)
        owned = await assets_of(conn, path.app, path.user_id, now=now)
        return transaction.answer(AdjustedAssets(assets=owned, changed=changed))


def _granted(product: Product, name: str, now: datetime, key: str) -> Entry:
    return grant_of(
        product, name, key=key, receipt_id=key, subscription=key, origin="admin", channel="operator", start=now
    )


async def _enter(
    call: Call,
    conn: Connection,
    path: UserPath,
    *,
    action: Action,
    change: Model,
    entry: Callable[[str], Entry],
    now: datetime,
) -> None:
    """Record a change of an asset. Post its entry with the id of the record as its key."""
    subject = Subject(path.app, "user", path.user_id)
    expected = entry(_KEY)
    asset = await assets.find(conn, path.app, path.user_id, name=expected.name, subscription=expected.subscription)
    before = None if asset is None else _audited(asset)
    after = _audited(apply_entry(asset, expected, at=now)) | {
        "change": change.model_dump(mode="json", exclude_none=True)
    }
    audit_id = await audit.record_change(
        conn, call.origin, action=action, subject=subject, before=before, after=after
    )
    posted, sinks = entry(f"{_KEY}{audit_id}"), call.services.sinks
    await ledger.post(conn, path.app, path.user_id, entry=posted, now=now, sinks=sinks)


def _audited(asset: Asset) -> dict[str, Any]:
    return {"asset": asset.name, "quantity": asset.units, "ends_at": asset.ends_at and rfc3339(asset.ends_at)}


def entry_view(stored: StoredEntry) -> EntryView:
    entry = stored.entry
    return EntryView(
        entry_id=stored.entry_id,
        key=entry.key,
        kind=entry.kind,
        name=entry.name,
        subscription=entry.subscription,
        quantity=entry.quantity,
        starts_at=rfc3339(entry.starts_at),
        ends_at=rfc3339(entry.ends_at),
        grace_ends_at=rfc3339(entry.grace_ends_at),
        bp_product_id=entry.bp_product_id,
        receipt_id=entry.receipt_id,
        origin=entry.origin,
        channel=entry.channel,
        entered_at=rfc3339(stored.entered_at),
    )


_KEY = "admin:"
"""Prefix of the keys of entries by operators."""
_PATH = "/admin/api/users/{app}/{user_id}/assets"

ADMIN_ASSET_ROUTES = [
    Endpoint("GET", _PATH, read_assets, FOR_EDITORS, errors=USER_ERRORS),
    Endpoint("GET", f"{_PATH}/entries", list_entries, FOR_EDITORS, errors=USER_ERRORS),
    Endpoint("POST", _PATH, grant, FOR_EDITORS, errors=(*USER_ERRORS, ConfigInvalid)),
    Endpoint("PATCH", _PATH, adjust, FOR_EDITORS, errors=(*USER_ERRORS, AssetNotFound)),
]
