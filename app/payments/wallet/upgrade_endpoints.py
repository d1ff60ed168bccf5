"""The endpoints of upgrades of wallet subscriptions (§4.10)."""

from pydantic import Field

from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body, Path
from app.http.rows.transactions import Transaction
from app.payments.posting import begin_client_posting
from app.payments.subscribing import check_none_live
from app.payments.wallet import subscription_sync as wallet_subscription_sync
from app.payments.wallet.periods import last_paid
from app.payments.wallet.refunds import is_disputed
from app.payments.wallet.subscription_endpoints import (
    SubscriptionNotFound,
    SubscriptionPath,
    create_or_sync,
    new_row,
    own_row,
    plan_for,
    synced_reply,
)
from app.payments.wallet.subscription_states import apply_subscription
from app.payments.wallet.subscription_sync import Synced
from app.payments.wallet.views import SubscriptionReply, reply_of, subscription_view
from app.payments.wallet.wallet import account_of, return_urls
from storage.assets import assets
from storage.configs.kinds.products import Product
from storage.payments.cards import subscriptions as card_subscriptions
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.payments.wallet import upgrades as wallet_upgrades
from storage.payments.wallet.subscriptions import ACTIVE, EXPIRED, WalletSubscription
from streams.wire.errors import InvalidOperation, ServiceError, listed
from streams.wire.ids import new_id
from streams.wire.model import Model


class UnsupportedUpgrade(ServiceError):
    """The subscription to upgrade was not bought by wallet."""

    error_type = "subscription_unsupported_upgrade"
    status = 400


class UpgradeRefused(InvalidOperation):
    """The subscription cannot be upgraded.

    It is not active, its plan is about to change or its last payment is disputed, or the target has a trial or is
    the same.
    """


class UpgradeBody(Model):
    new_bp_product_id: str = Field(min_length=1, max_length=128)
    """Name of a config of kind `products`: the target, which must not have a trial."""


async def upgrade(
    call: Call, transaction: Transaction, path: Path[SubscriptionPath], body: Body[UpgradeBody]
) -> SubscriptionReply:
    """Replace an active subscription by one to another product.

    Send the user to `approve_link_href`, then call `sync_upgrade`. Once the new subscription is paid, the asset of
    the old one ends, the old one is cancelled, and the unused part of its last payment is refunded. Until then, the
    same call returns the same new subscription, and a call with another target abandons it.
    """
    old = await _wallet_row(call, path.sub_id)
    target = plan_for(call, body.new_bp_product_id, country=old.country or None, field="new_bp_product_id")
    source = await wallet_subscription_sync.sync_subscription(call.services, call.app_id, old, channel="client")
    await _check_upgrade(call, source, body.new_bp_product_id, target)
    row = await _store_upgrade(call, source.row, body.new_bp_product_id, target)
    found = await create_or_sync(call, row)
    async with transaction.begin() as conn:
        row = await apply_subscription(await begin_client_posting(call, conn), row, found)
        return transaction.answer(await reply_of(call, conn, subscription_view(call, row, found)))


async def sync_upgrade(call: Call, path: Path[SubscriptionPath]) -> SubscriptionReply:
    """Read the new subscription of an upgrade from the platform.

    The periods that are paid are granted. The id may be that of the new or of the old subscription. The response
    shows the new one.
    """
    row = await own_row(call, path.sub_id)
    async with call.services.database.connection() as conn:
        for upgrade in await wallet_upgrades.of_old(conn, call.app_id, old_row=row.row_id):
            new = await wallet_subscriptions.get(conn, call.app_id, row_id=upgrade.new_row)
            if new.subscription_id is not None:
                row = new
                break
    return await synced_reply(call, row)


async def _wallet_row(call: Call, sub_id: str) -> WalletSubscription:
    """Return the subscription of the user. Raises `UnsupportedUpgrade` for one of another platform."""
    try:
        return await own_row(call, sub_id)
    except SubscriptionNotFound:
        async with call.services.database.connection() as conn:
            owned = await assets.of_user(conn, call.app_id, call.caller.user)
            by_card = await card_subscriptions.of_user(conn, call.app_id, call.caller.user, subscription_id=sub_id)
        if by_card is not None or any(asset.subscription == sub_id for asset in owned if asset.subscription):
            raise UnsupportedUpgrade(f"subscription {listed([sub_id])} was not bought by wallet") from None
        raise


async def _check_upgrade(call: Call, source: Synced, bp_product_id: str, target: tuple[Product, str]) -> None:
    """Raise `UpgradeRefused` unless `target` may replace `source`."""
    row, found, (product, plan_id) = source.row, source.read.subscription, target
    if row.superseded_at is not None:
        raise UpgradeRefused("the subscription is replaced by another one")
    if found is None or row.status != ACTIVE:
        raise UpgradeRefused(f"the subscription is {row.status}, not {ACTIVE}")
    async with call.services.database.connection() as conn:
        paid = await last_paid(conn, call.app_id, row)
        payments = source.read.payments
        if payments and await is_disputed(conn, call.app_id, payments[-1].id):
            raise UpgradeRefused("the last payment of the subscription is disputed")
    current = row.plan_id if paid is None else paid.entry.product_id
    if found.plan_id and found.plan_id != current:
        raise UpgradeRefused("the plan of the subscription is about to change")
    if plan_id == current:
        raise UpgradeRefused(f"{bp_product_id} is the current product of the subscription")
    assert product.walletpay is not None, "the target has a plan"
    plan = await account_of(call.services, call.app_id, product.walletpay.config).plan(plan_id)
    if product.trial is not None or plan.has_trial:
        raise UpgradeRefused(f"{bp_product_id} has a trial period")


async def _store_upgrade(
    call: Call, source: WalletSubscription, bp_product_id: str, target: tuple[Product, str]
) -> WalletSubscription:
    """Return the row of the new subscription: that of a pending upgrade to the same target, or a new one.

    A pending upgrade to another target is abandoned.
    """
    app_id, (product, plan_id) = call.app_id, target
    assert product.walletpay is not None, "the target has a plan"
    urls = return_urls(call.services, app_id, product.walletpay.config)
    async with call.services.database.transaction() as conn:
        posting = await begin_client_posting(call, conn)
        for upgrade in await wallet_upgrades.of_old(conn, app_id, old_row=source.row_id):
            if upgrade.state == "abandoned":
                continue
            row = await wallet_subscriptions.get(conn, app_id, row_id=upgrade.new_row)
            if upgrade.state != "awaiting_approval":
                raise UpgradeRefused("the subscription is replaced by another one")
            if upgrade.bp_product_id == bp_product_id and row.plan_id == plan_id and row.status != EXPIRED:
                return row
            await wallet_upgrades.set_state(conn, app_id, upgrade=upgrade, to="abandoned", now=posting.now)
        await check_none_live(conn, app_id, source.uid, bp_product_id=bp_product_id, product=product)
        new = new_row(
            call, new_id(), bp_product_id, product, plan_id=plan_id, country=source.country or None, urls=urls
        )
        row = await wallet_subscriptions.add(conn, app_id, subscription=new)
        await wallet_upgrades.add(
            conn, app_id,
            upgrade_id=new_id(), old_row=source.row_id, new_row=row.row_id, bp_product_id=bp_product_id,
            now=posting.now,
        )  # fmt: skip
        return row
