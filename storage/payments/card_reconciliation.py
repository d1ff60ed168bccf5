"""What remains to be found out about payments at the card platform: its open rows."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar

from storage.jobs import Job
from storage.payments.card_payments import CardPayment
from storage.payments.card_subscriptions import CardSubscription
from storage.postgres import Connection

PAYMENTS_READ_FOR = timedelta(days=1)
"""For how long an unpaid payment is read back. If it is paid later, an event says so."""
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


_PAYMENTS = f"""
update card_payments set checked_at = $3 where payment_id in (
    select payment_id from card_payments
    where app_id = $1 and config = $2 and status not in ('succeeded', 'canceled', 'abandoned')
    and (status = 'new' or created_at > $5) and (checked_at <= $4 or checked_at > $3)
    order by checked_at limit $6 for update skip locked)
returning {", ".join(CardPayment.__slots__)}
"""  # noqa: S608 - constants


async def open_payments(
    conn: Connection, app_id: str, *, config: str, now: datetime, limit: int
) -> Sequence[CardPayment]:
    """Return payments that are due to be read from the platform. They are due again after a while."""
    rows = await conn.fetch(_PAYMENTS, app_id, config, now, now - _BETWEEN, now - PAYMENTS_READ_FOR, limit)
    return [CardPayment(**row) for row in rows]


_SUBSCRIPTIONS = f"""
update card_subscriptions set checked_at = $3 where row_id in (
    select row_id from card_subscriptions
    where app_id = $1 and config = $2 and status not in ('refused', 'abandoned', 'canceled', 'incomplete_expired')
    and (status not in ('trialing', 'active') or period_ends_at <= $3) and (checked_at <= $4 or checked_at > $3)
    order by checked_at limit $5 for update skip locked)
returning {", ".join(CardSubscription.__slots__)}
"""  # noqa: S608 - constants


async def open_subscriptions(
    conn: Connection, app_id: str, *, config: str, now: datetime, limit: int
) -> Sequence[CardSubscription]:
    """Return subscriptions that are not paid, or whose period has ended, and that are due to be read."""
    rows = await conn.fetch(_SUBSCRIPTIONS, app_id, config, now, now - _BETWEEN, limit)
    return [CardSubscription(**row) for row in rows]


_ABANDON = "update card_payments set status = 'abandoned' where payment_id = $1 and intent_id is null"


async def abandon_payment(conn: Connection, payment_id: str) -> None:
    """Store that the platform has no such payment."""
    await conn.execute(_ABANDON, payment_id)
