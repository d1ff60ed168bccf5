"""Payments and subscriptions whose result at the card platform is not known yet."""

from datetime import datetime, timedelta
from typing import ClassVar

from storage.jobs.jobs import Job
from storage.payments.cards.payments import CardPayment
from storage.payments.cards.subscriptions import CardSubscription
from storage.postgres.database import Connection

PAYMENTS_READ_FOR = timedelta(days=1)
"""How long an unpaid payment is read back. If it is paid later, an event reports that."""
_BETWEEN = timedelta(seconds=30)
"""The minimum time between two reads of one row."""


class ReconcileCards(Job):
    """Compare the payments with cards of all apps with their platforms."""

    task: ClassVar[str] = "reconcile_cards"


class ReconcileCardPlatform(Job):
    """Compare the payments of one config of kind `cardpay` with its platform."""

    task: ClassVar[str] = "reconcile_card_platform"
    timeout_s: ClassVar[float] = 600
    app_id: str
    config: str


_DUE = "app_id = $1 and config = $2 and (checked_at <= $4 or checked_at > $5)"
_PAYMENT = f"""
update card_payments set checked_at = $3 where payment_id = (
    select payment_id from card_payments
    where {_DUE} and status not in ('succeeded', 'canceled', 'abandoned') and (status = 'new' or created_at > $6)
    order by checked_at limit 1 for update skip locked)
returning {", ".join(CardPayment.__slots__)}
"""


async def next_payment(
    conn: Connection, app_id: str, *, config: str, now: datetime, since: datetime
) -> CardPayment | None:
    """Claim an unpaid payment that is due to be read back, and was not claimed since `since`.

    It is due again after 30 s.
    """
    unread = _due_outside(now=now, since=since)
    row = await conn.fetchrow(_PAYMENT, app_id, config, now, *unread, now - PAYMENTS_READ_FOR)
    return None if row is None else CardPayment(**row)


_SUBSCRIPTION = f"""
update card_subscriptions set checked_at = $3 where row_id = (
    select row_id from card_subscriptions
    where {_DUE} and status not in ('refused', 'abandoned', 'canceled', 'incomplete_expired')
    and (status not in ('trialing', 'active') or coalesce(check_at, period_ends_at) <= $3)
    order by checked_at limit 1 for update skip locked)
returning {", ".join(CardSubscription.__slots__)}
"""


async def next_subscription(
    conn: Connection, app_id: str, *, config: str, now: datetime, since: datetime
) -> CardSubscription | None:
    """Claim a subscription that is unpaid, or about to renew, as `next_payment` does."""
    row = await conn.fetchrow(_SUBSCRIPTION, app_id, config, now, *_due_outside(now=now, since=since))
    return None if row is None else CardSubscription(**row)


def _due_outside(*, now: datetime, since: datetime) -> tuple[datetime, datetime]:
    """Return the range of `checked_at` of rows that are not due. Later times come from a clock that was moved."""
    return since - _BETWEEN, now + _BETWEEN


_ABANDON = "update card_payments set status = 'abandoned' where payment_id = $1 and intent_id is null"


async def abandon_payment(conn: Connection, payment_id: str) -> None:
    """Store that the platform has no such payment."""
    await conn.execute(_ABANDON, payment_id)
