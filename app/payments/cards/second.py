"""Ends a subscription with a card that becomes active while its user has another one to the same product."""

from dataclasses import replace

from app.payments.posting import Posting
from storage.jobs.jobs import enqueue
from storage.payments import subscribed
from storage.payments.cards.subscriptions import LIVE_STATUSES, CardSubscription, EndSecondCardSubscription
from vendors.payments.stripe.objects import Subscription


async def with_second_superseded(
    posting: Posting, row: CardSubscription, read: Subscription, *, number: int
) -> CardSubscription:
    """Return a locked subscription, marked if it became active while the user has another live one to its product.

    It may have waited for its first payment, or was cancelled and resumed at the platform. What is paid from then
    on is refunded, and a job cancels it. Each later read that shows it as renewing stores the job again.
    """
    if number <= row.applied_read or read.status not in LIVE_STATUSES or not read.renews:
        return row
    if row.superseded_at is None and not row.is_live and await subscribed.has_live(
        posting.conn, row.app_id, row.uid, bp_product_id=row.product_id, product=row.sold, besides=row.row_id
    ):  # fmt: skip
        row = replace(row, superseded_at=posting.now)
    if row.superseded_at is not None:
        job = EndSecondCardSubscription(app_id=row.app_id, row_id=row.row_id)
        await enqueue(posting.conn, job, key=f"{job.task}:{row.row_id}")
    return row
