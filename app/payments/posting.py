"""Applies what was read from a payment platform to the assets of a user, in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.http.rows.endpoint import Call
from app.services import Services
from storage.assets import ledger
from storage.assets.entries import Channel, Entry
from storage.events.outbox import PurchaseEvent
from storage.payments import mismatches, sales_days
from storage.postgres.database import Connection
from streams.wire.money import Money


@dataclass(frozen=True, slots=True)
class Posting:
    """Posts ledger entries of one user in the transaction of `conn`, which has locked the user's row."""

    services: Services
    conn: Connection
    app_id: str
    uid: str
    channel: Channel
    """The source that has reported the events."""
    now: datetime
    """The app's time."""
    is_deactivated: bool
    """Whether the user is deactivated. Such a user has entries, but no assets."""

    async def post(self, entry: Entry) -> bool:
        """Post an entry once. Return whether it was new. A new entry from a reconciliation is a mismatch."""
        is_new = await ledger.post_locked(
            self.conn, self.app_id, self.uid,
            entry=entry, has_assets=not self.is_deactivated, now=self.now, sinks=self.services.sinks,
        )  # fmt: skip
        if is_new and entry.channel == "reconciliation":
            await mismatches.add(
                self.conn, self.app_id,
                platform=entry.platform, kind="missed_entry", subject=entry.key, detail=entry.kind, now=self.now,
            )  # fmt: skip
        return is_new

    async def report(self, purchase: PurchaseEvent) -> None:
        """Report a payment or a refund to the app's event sinks."""
        await report_purchase(self.services, self.conn, self.app_id, purchase, now=self.now)

    async def compare_paid(self, platform: str, sale_id: str, *, paid: Money, expected: Sequence[Money]) -> None:
        """Record a mismatch if the amount of a sale is none of those expected."""
        if paid in expected:
            return
        await mismatches.add(
            self.conn, self.app_id,
            platform=platform, kind="amount_differs", subject=sale_id,
            detail=f"{paid} were paid instead of {expected[0]}", now=self.now,
        )  # fmt: skip


async def report_purchase(
    services: Services, conn: Connection, app_id: str, purchase: PurchaseEvent, *, now: datetime
) -> None:
    """Report a payment or a refund to the app's event sinks, and add it to the sums of the day."""
    await services.sinks.report(conn, app_id, purchase, now=now)
    await sales_days.add(
        conn, app_id, kind=purchase.kind, money=Money(purchase.amount, purchase.currency.upper()), now=now
    )


async def begin_posting(
    services: Services, conn: Connection, app_id: str, uid: str, *, channel: Channel
) -> Posting:
    """Lock a user so that no other transaction applies the user's payments. Deactivated users are locked too."""
    has_assets = await ledger.lock(conn, app_id, uid)
    return Posting(services, conn, app_id, uid, channel, services.clock.now(app_id), is_deactivated=not has_assets)


async def begin_client_posting(call: Call, conn: Connection) -> Posting:
    """Begin a posting for the user of a call."""
    return await begin_posting(call.services, conn, call.app_id, call.caller.user, channel="client")
