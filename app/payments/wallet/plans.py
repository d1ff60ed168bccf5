"""Which plan each payment of a subscription is for. PayPal's transactions do not name it.

The `plan_id` of a subscription changes as soon as the payer consents to another plan, and the new plan is paid from
the next cycle on. So payments after a change are of the new plan, and earlier ones of the old plan. Amounts say
nothing: a discount, a tax or another price of a plan does not make it another plan.

Usually a change is read before the next payment is made. If its webhook is lost, both may be read at once. A
payment is of the old plan if an earlier read has granted it, since that read has shown the old plan, or if the
subscription began with it. The first one of the others that is of the new plan is found by these rules:

- If the plans have different periods, a payment is of the plan whose period ends nearer to the next payment, or to
  `next_billing_time` after the last one. A change does not move that time, only a payment does.
- If they have the same period, the last payment is of the new plan if it was the last update of the subscription
  (`update_time`), because the change came before it then. If the subscription was updated later, the change came
  later. The payments before the last one are of the old plan.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from app.payments.posting import Posting
from storage.assets import entries as asset_entries
from storage.configs.kinds.products import PRODUCTS, Product
from storage.payments.wallet.subscriptions import PlanChange, WalletSubscription
from streams.wire.errors import ConfigInvalid
from streams.wire.period import Period
from vendors.payments.paypal.subscriptions import Subscription, Transaction

_SAME = timedelta(minutes=1)
"""Times of one payment differ by less, in its transaction, in the subscription, and in `update_time`."""


def product_of_plan(posting: Posting, row: WalletSubscription, plan_id: str) -> tuple[str, Product]:
    """Return the product of a plan, with its id: as configured now, or else as stored with the subscription."""
    configs = posting.services.configs
    is_changed = plan_id != row.plan_id
    for name in configs.names(PRODUCTS, posting.app_id) if is_changed else [row.bp_product_id]:
        try:
            product = configs.required(PRODUCTS, posting.app_id, name).value
        except ConfigInvalid:
            continue
        wallet = product.walletpay
        if product.period is None or wallet is None or wallet.config != row.config:
            continue
        if plan_id in {wallet.plan_id, *wallet.plans.values()}:
            return name, product
    return row.bp_product_id, Product.model_validate(row.product)


async def with_changed_plan(
    posting: Posting, row: WalletSubscription, read: Subscription, payments: Sequence[Transaction]
) -> WalletSubscription:
    """Return a subscription with the change of its plan, if one is read for the first time."""
    if read.plan_id in {"", row.latest_plan_id}:
        return row
    since = await _since(posting, row, read, payments)
    return replace(row, plan_changes=[*row.plan_changes, PlanChange(plan_id=read.plan_id, since=since).stored])


async def _since(
    posting: Posting, row: WalletSubscription, read: Subscription, payments: Sequence[Transaction]
) -> datetime:
    """Return the time after which payments are of the changed plan, which is read for the first time."""
    last = read.last_payment
    if last is None:
        return row.created_at
    # The last payment may not be listed yet.
    times = [*(payment.time for payment in payments if payment.time < last.time - _SAME), last.time]
    grants = await asset_entries.grants_of(posting.conn, posting.app_id, row.uid, subscription=row.platform_id)
    granted = [grant.starts_at for grant in grants if grant.starts_at is not None]
    begins_with_payment = Product.model_validate(row.product).trial is None
    for number, (time, following) in enumerate(zip(times, [*times[1:], read.next_payment_at], strict=True)):
        is_known = any(abs(start - time) < _SAME for start in granted) or (begins_with_payment and number == 0)
        if not is_known and _is_of_new_plan(posting, row, read, time=time, following=following):
            return time - _SAME
    return last.time + _SAME


def _is_of_new_plan(
    posting: Posting, row: WalletSubscription, read: Subscription, *, time: datetime, following: datetime | None
) -> bool:
    """Return whether a payment is of the changed plan. `following` is when the next one was or will be made."""
    old, new = (_end_of_period(posting, row, plan_id, start=time) for plan_id in (row.latest_plan_id, read.plan_id))
    if old != new and following is not None:
        return abs(following - new) < abs(following - old)
    is_last = read.last_payment is not None and time == read.last_payment.time
    return is_last and (read.update_time is None or read.update_time < time + _SAME)


def _end_of_period(posting: Posting, row: WalletSubscription, plan_id: str, *, start: datetime) -> datetime:
    period = product_of_plan(posting, row, plan_id)[1].period
    assert period is not None, "a subscription has a period"
    return Period.parse(period).after(start)
