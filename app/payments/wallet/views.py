"""JSON representation of wallet subscriptions (§2.9)."""

from datetime import datetime

from app.assets.assets import assets_of
from app.assets.view import AssetView
from app.http.rows.endpoint import Call
from app.payments.wallet.subscription_states import SubscriptionRead, status_of
from storage.configs.kinds.products import Product
from storage.payments.wallet.subscriptions import ACTIVE, ENDED_STATUSES, PENDING, WalletSubscription
from storage.postgres.database import Connection
from streams.wire.codec import rfc3339
from streams.wire.model import Model
from vendors.payments.paypal.subscriptions import Transaction


class TransactionView(Model):
    id: str
    status: str
    """The platform's state, such as `COMPLETED`."""
    amount: int
    """Minor units, such as cents."""
    currency: str
    """In lower case."""
    ts: int
    """Unix seconds."""


class SubscriptionView(Model):
    """A subscription. Times are Unix seconds, and 0 where there is none."""

    id: str
    plan_id: str
    status: str
    """`APPROVAL_PENDING`, `APPROVED`, `ACTIVE`, `SUSPENDED`, `CANCELLED` or `EXPIRED`."""
    approve_link_href: str
    """The page on which the user approves it. Empty once it is approved."""
    canceled_ts: int
    """When it was cancelled, or has expired after its last payment."""
    canceled_time: str
    """Deprecated: use `canceled_ts`. The zero time if it is not cancelled."""
    last_payment_ts: int
    next_billing_ts: int
    """While it is `ACTIVE`."""
    bp_product_id: str
    walletpay_product_id: str
    """The platform's id of the product."""
    latest_transaction: TransactionView | None = None
    """Missing before the first payment."""
    next_billing_amount: int | None = None
    """Minor units, such as cents. Only in responses of `fetch`, while it is `ACTIVE`."""
    next_billing_currency: str | None = None
    """In lower case."""


class SubscriptionReply(Model):
    """The subscription, with the user's assets."""

    walletpay_sub: SubscriptionView
    assets: list[AssetView]
    """All assets of the user."""


async def reply_of(call: Call, conn: Connection, view: SubscriptionView) -> SubscriptionReply:
    """Return a response with a subscription and the user's assets."""
    now = call.services.clock.now(call.app_id)
    return SubscriptionReply(
        walletpay_sub=view, assets=await assets_of(conn, call.app_id, call.caller.user, now=now)
    )


def subscription_view(
    call: Call, row: WalletSubscription, read: SubscriptionRead, *, with_next_payment: bool = False
) -> SubscriptionView:
    found, status = read.subscription, status_of(row, read, now=call.services.clock.now(call.app_id))
    has_ended = found is not None and found.status in ENDED_STATUSES
    cancelled_at = found.status_update_time if found is not None and has_ended else None
    last_payment = None if found is None else found.last_payment
    upcoming = found if status == ACTIVE else None
    payment = upcoming.next_payment if upcoming is not None and with_next_payment else None
    wallet = Product.model_validate(row.product).walletpay
    return SubscriptionView(
        id=row.platform_id,
        plan_id=row.plan_id if found is None else found.plan_id or row.plan_id,
        status=status,
        approve_link_href=found.approve_url if found is not None and status == PENDING else "",
        canceled_ts=_seconds(cancelled_at),
        canceled_time=rfc3339(cancelled_at),
        last_payment_ts=0 if last_payment is None else _seconds(last_payment.time),
        next_billing_ts=0 if upcoming is None else _seconds(upcoming.next_payment_at),
        bp_product_id=row.bp_product_id,
        walletpay_product_id="" if wallet is None else wallet.product_id,
        latest_transaction=_transaction_view(read.transactions[-1]) if read.transactions else None,
        next_billing_amount=None if payment is None else payment.amount,
        next_billing_currency=None if payment is None else payment.currency.lower(),
    )


def _transaction_view(payment: Transaction) -> TransactionView:
    return TransactionView(
        id=payment.id,
        status=payment.status,
        amount=payment.amount.amount,
        currency=payment.amount.currency.lower(),
        ts=_seconds(payment.time),
    )


def _seconds(at: datetime | None) -> int:
    return 0 if at is None else int(at.timestamp())
