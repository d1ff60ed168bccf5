"""The job that cancels the subscriptions of a deactivated user at payment platforms."""

from typing import ClassVar

from storage.jobs.jobs import Job, enqueue
from storage.payments.cards import subscriptions as card_subscriptions
from storage.payments.wallet import subscriptions as wallet_subscriptions
from storage.postgres.database import Connection


class EndSubscriptions(Job):
    """Cancel the subscriptions of a deactivated user at payment platforms. Retried for up to a day."""

    task: ClassVar[str] = "end_subscriptions"
    attempts: ClassVar[int] = 30
    timeout_s: ClassVar[float] = 60
    app_id: str
    uid: str


async def end_subscriptions_later(conn: Connection, app_id: str, uid: str) -> None:
    """Store the job that cancels the subscriptions of a user, if there are any. `conn` is in a transaction."""
    has_wallet = await wallet_subscriptions.unended_of_user(conn, app_id, uid)
    if has_wallet or await card_subscriptions.unended_of_user(conn, app_id, uid):
        await enqueue(conn, EndSubscriptions(app_id=app_id, uid=uid), key=f"subscriptions/{app_id}/{uid}")
