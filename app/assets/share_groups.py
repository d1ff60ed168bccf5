"""Share groups (§4.12): the code of a user's subscription, and joining by it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from app.assets.assets import AssetList, assets_of
from app.http.callers.addresses import client_network
from app.http.callers.limits import count_together
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from app.http.rows.transactions import Transaction
from app.services import Services
from storage.accounts import users
from storage.assets import assets, share_groups
from storage.assets.assets import Asset
from storage.assets.share_groups import ShareCodeNotFound, parse_code
from storage.configs.kinds.products import PRODUCTS
from storage.configs.kinds.share_groups import MAX_SHARE_QUOTA, SHARE_GROUPS
from storage.limits import Bucket
from storage.postgres.database import Connection
from streams.wire.errors import InvalidParameter, InvalidSession, ItemNotFound, ServiceError
from streams.wire.model import Model

_TAG = "share_codes"


class NothingToShare(ItemNotFound):
    """The user has no subscription that is valid."""


class SharingUnsupported(ServiceError):
    """The subscriptions of the user were bought on platforms whose assets may not be shared."""

    error_type = "asset_request_not_supported"
    status = 400


class CodeBody(Model):
    share_code_quota: int | None = Field(default=None, ge=0, le=MAX_SHARE_QUOTA)
    """How many users may join. The default is also the maximum: that of the product or of `share_groups`."""


class ShareCode(Model):
    """The code of the user's subscription, and how many users can still join it."""

    share_code: str
    """10 letters and digits. Joining ignores case and hyphens, and takes O for 0, I and L for 1."""
    remain_count: int
    """How many more users may join."""


class JoinBody(Model):
    share_code: Annotated[str, Field(max_length=64), AfterValidator(parse_code)]


async def get_code(call: Call, transaction: Transaction, body: Body[CodeBody]) -> ShareCode:
    """Get the code with which others join the user's subscription.

    The code stays the same. It belongs to the subscription that lasts longest among those that may be shared.
    """
    app_id, uid = call.app_id, call.caller.user
    now = call.services.clock.now(app_id)
    async with transaction.begin() as conn:
        await _lock(call, conn, uid)
        asset = _longest(call.services, app_id, await assets.of_user(conn, app_id, uid), now=now)
        allowed = _quota(call.services, app_id, asset)
        quota = allowed if body.share_code_quota is None else body.share_code_quota
        if quota > allowed:
            raise InvalidParameter(f"share_code_quota must be at most {allowed}")
        group = await share_groups.put(conn, app_id, uid, asset=asset, quota=quota, now=now)
        return transaction.answer(ShareCode(share_code=group.code, remain_count=quota - group.members))


async def join(call: Call, transaction: Transaction, body: Body[JoinBody]) -> AssetList:
    """Join the subscription of another user by its code.

    The user has the same asset until the owner's asset ends. Repeating the call has no further effect.
    """
    app_id, uid = call.app_id, call.caller.user
    now = call.services.clock.now(app_id)
    async with _guess(call), transaction.begin() as conn:
        await _lock(call, conn, uid)
        group = await share_groups.lock(conn, app_id, code=body.share_code)
        if group is None:
            raise ShareCodeNotFound
        if group.uid == uid:
            raise InvalidParameter("share_code is the user's own")
        asset = await assets.find(conn, app_id, group.uid, name=group.name, subscription=group.subscription)
        if asset is None or not asset.is_valid(now) or not _may_share(call.services, app_id, asset):
            raise ShareCodeNotFound
        quota = _quota(call.services, app_id, asset)
        await share_groups.join(conn, app_id, uid, group=group, quota=quota, now=now)
        return transaction.answer(AssetList(assets=await assets_of(conn, app_id, uid, now=now)))


async def _lock(call: Call, conn: Connection, uid: str) -> None:
    """Lock the user, so that the assets do not change and the user is not deactivated meanwhile."""
    if await users.lock(conn, call.app_id, uid) is None:
        raise InvalidSession


def _longest(services: Services, app_id: str, owned: list[Asset], *, now: datetime) -> Asset:
    """Return the subscription that ends last, of those that may be shared."""
    valid = [asset for asset in owned if asset.type == "subscription" and asset.is_valid(now)]
    if not valid:
        raise NothingToShare("the user has no valid subscription")
    valid.sort(key=lambda asset: asset.ends_at or now, reverse=True)
    with_config = [asset for asset in valid if services.configs.exists(SHARE_GROUPS, app_id, asset.name)]
    for asset in with_config or valid[:1]:
        if _may_share(services, app_id, asset):
            return asset
    raise SharingUnsupported(f"subscriptions of {with_config[0].platform or 'operators'} cannot be shared")


def _may_share(services: Services, app_id: str, asset: Asset) -> bool:
    """Return whether the platform of an asset is listed. Raises `ConfigInvalid` if it has no config."""
    return asset.platform in services.configs.required(SHARE_GROUPS, app_id, asset.name).value.platforms


def _quota(services: Services, app_id: str, asset: Asset) -> int:
    """Return how many users may join: the quota of the product, or else of the asset."""
    if services.configs.exists(PRODUCTS, app_id, asset.bp_product_id):
        product = services.configs.required(PRODUCTS, app_id, asset.bp_product_id).value
        if product.share_quota is not None:
            return product.share_quota
    return services.configs.required(SHARE_GROUPS, app_id, asset.name).value.quota


@asynccontextmanager
async def _guess(call: Call) -> AsyncIterator[None]:
    """Count a wrong code, and take the count back unless the block raises `ShareCodeNotFound`.

    It is counted before the block. Otherwise, concurrent guesses could exceed the limits.
    """
    rate = call.app_limits.rate
    address = client_network(call.request, call.services.settings.trusted_proxies)
    buckets = [
        Bucket("share_codes", rate("share_codes"), call.caller.user),
        Bucket("share_code_address", rate("share_code_address"), address),
    ]
    counted = await count_together(call.services, call.request, call.caller, buckets, tag=_TAG)
    wrong = False
    try:
        yield
    except ShareCodeNotFound:
        wrong = True
        raise
    finally:
        if not wrong:
            await counted.take_back()
