"""The endpoints of subscriptions by wallet (§4.10), except upgrades."""

from typing import Annotated

from pydantic import Field

from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body, Path
from app.http.rows.transactions import Transaction
from app.payments.posting import begin_client_posting
from app.payments.subscribing import check_none_live, check_trial_unused
from app.payments.wallet import subscription_sync as wallet_subscription_sync
from app.payments.wallet.subscription_states import (
    UNAPPROVED_FOR,
    SubscriptionRead,
    apply_subscription,
    create_at_platform,
    read_subscription,
    status_of,
)
from app.payments.wallet.views import SubscriptionReply, reply_of, subscription_view
from app.payments.wallet.wallet import product_for, return_urls, soon
from storage.configs.kinds.products import Country, Product
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.payments.wallet.subscriptions import PENDING, WalletSubscription
from storage.postgres.database import Connection
from streams.wire.errors import ConfigInvalid, InvalidParameter, ItemNotFound, listed
from streams.wire.model import Model


class SubscriptionNotFound(ItemNotFound):
    """No subscription of the user has this id."""

    def __init__(self, sub_id: str) -> None:
        super().__init__(f"subscription {listed([sub_id])} does not exist")


class NewSubscription(Model):
    product_id: str = Field(min_length=1, max_length=128)
    """Name of a config of kind `products`."""
    country_code: Country | None = None
    """The country of the user, for products whose plan depends on it."""
    return_url: str | None = None
    """Where the user goes after the approval. Default: the URL of the config."""
    cancel_url: str | None = None
    """Where the user goes after cancelling. Default: the URL of the config."""


class SubscriptionPath(Model):
    sub_id: Annotated[str, Field(max_length=1024)]
    """The platform's id of the subscription."""


async def subscribe(call: Call, transaction: Transaction, body: Body[NewSubscription]) -> SubscriptionReply:
    """Create a subscription.

    Send the user to `approve_link_href`. The platform reports the payment, or `sync` asks for it. Until the user
    has approved it, the same call returns the same subscription. A user has one live subscription to a product, and
    one free trial of an asset.
    """
    product, plan_id = plan_for(call, body.product_id, country=body.country_code)
    assert product.walletpay is not None, "it has a plan"
    urls = return_urls(
        call.services, call.app_id, product.walletpay.config,
        return_url=body.return_url, cancel_url=body.cancel_url,
    )  # fmt: skip
    new = new_row(
        call,
        transaction.operation_id,
        body.product_id,
        product,
        plan_id=plan_id,
        country=body.country_code,
        urls=urls,
    )
    row, found = await _to_approve(call, new)
    async with transaction.begin() as conn:
        posting = await begin_client_posting(call, conn)
        row = await apply_subscription(posting, row, found)
        return transaction.answer(await reply_of(call, conn, subscription_view(call, row, found)))


async def _to_approve(call: Call, new: WalletSubscription) -> tuple[WalletSubscription, SubscriptionRead]:
    """Return the subscription that the user is to approve, with what was read.

    It is `new`, or one to the same plan that waits for its approval. The latter is read back: if it was approved or
    has expired meanwhile, it no longer counts.
    """
    while True:
        async with call.services.database.transaction() as conn:
            row = await _waiting_or_new(call, conn, new)
        found = await create_or_sync(call, row)
        if row.row_id == new.row_id or status_of(row, found, now=new.created_at) == PENDING:
            return row, found


async def _waiting_or_new(call: Call, conn: Connection, new: WalletSubscription) -> WalletSubscription:
    """Return a subscription to the same plan that waits for its approval, or store `new`. The user is locked then.

    A repeat of the request gets its own subscription, whatever its state is.
    """
    app_id, product = call.app_id, Product.model_validate(new.product)
    await begin_client_posting(call, conn)
    if await wallet_subscriptions.exists(conn, app_id, row_id=new.row_id):
        return await wallet_subscriptions.get(conn, app_id, row_id=new.row_id)
    await check_none_live(conn, app_id, new.uid, bp_product_id=new.bp_product_id, product=product)
    await check_trial_unused(conn, app_id, new.uid, product=product)
    waiting = await wallet_subscriptions.to_approve(conn, app_id, like=new, since=new.created_at - UNAPPROVED_FOR)
    return waiting or await wallet_subscriptions.add(conn, app_id, subscription=new)


async def create_or_sync(call: Call, row: WalletSubscription) -> SubscriptionRead:
    """Create a stored subscription at the platform, or sync it if it exists there. Return what was read."""
    if row.subscription_id is None:
        return SubscriptionRead(await create_at_platform(call.services, call.app_id, row))
    return (
        await wallet_subscription_sync.sync_subscription(call.services, call.app_id, row, channel="client")
    ).read


async def sync(call: Call, path: Path[SubscriptionPath]) -> SubscriptionReply:
    """Read a subscription from the platform, granting paid periods."""
    row = await own_row(call, path.sub_id)
    return await synced_reply(call, row)


async def fetch(call: Call, path: Path[SubscriptionPath]) -> SubscriptionReply:
    """Read a subscription from the platform, with its next payment.

    The assets do not change.
    """
    row = await own_row(call, path.sub_id)
    found = await read_subscription(call.services, call.app_id, row)
    async with call.services.database.connection() as conn:
        return await reply_of(call, conn, subscription_view(call, row, found, with_next_payment=True))


async def synced_reply(call: Call, row: WalletSubscription) -> SubscriptionReply:
    """Sync a subscription, and return the response that shows it."""
    synced = await wallet_subscription_sync.sync_subscription(call.services, call.app_id, row, channel="client")
    async with call.services.database.connection() as conn:
        return await reply_of(call, conn, subscription_view(call, synced.row, synced.read))


async def own_row(call: Call, sub_id: str) -> WalletSubscription:
    """Return a subscription of the user. Unknown ones and those of other users get the same error."""
    async with call.services.database.connection() as conn:
        row = await wallet_subscriptions.find(conn, call.app_id, subscription_id=sub_id)
    if row is None or row.uid != call.caller.user:
        raise SubscriptionNotFound(sub_id)
    return row


def plan_for(
    call: Call, bp_product_id: str, *, country: str | None, field: str = "product_id"
) -> tuple[Product, str]:
    """Return a product that can be subscribed to, and its plan. `field` names it in requests."""
    product, wallet = product_for(call.services, call.app_id, bp_product_id)
    if product.type != "subscription":
        raise InvalidParameter(f"{field} is not a subscription")
    plan_id = wallet.plan_in_country(country)
    if plan_id is None:
        raise ConfigInvalid(f"products {bp_product_id}: walletpay.plan_id is not set")
    return product, plan_id


def new_row(
    call: Call,
    row_id: str,
    bp_product_id: str,
    product: Product,
    *,
    plan_id: str,
    country: str | None,
    urls: tuple[str, str],
) -> WalletSubscription:
    """Return the row of a new subscription. It is stored before the platform is called."""
    assert product.walletpay is not None, "it has a plan"
    now = call.services.clock.now(call.app_id)
    return WalletSubscription(
        row_id, call.caller.user, product.walletpay.config, bp_product_id, product.model_dump(mode="json"),
        plan_id, country or "", *urls, now, check_at=soon(now),
    )  # fmt: skip
