"""Entries of the ledger that follow from what was read of a payment platform."""

from dataclasses import dataclass
from datetime import datetime

from app.services import Services
from storage import ledger, users
from storage.asset_entries import Channel, Entry
from storage.payments import mismatches
from storage.postgres import Connection
from storage.reported import PurchaseEvent


@dataclass(frozen=True, slots=True)
class Posting:
    """Posts entries of one user, who is locked, in the transaction of `conn`.

    What only a reconciliation has found is reported.
    """

    services: Services
    conn: Connection
    app_id: str
    uid: str
    channel: Channel
    """What has reported the events."""
    now: datetime
    """The app's time."""

    async def post(self, entry: Entry) -> bool:
        """Enter an event, once. Return whether it was new."""
        is_new = await ledger.post(
            self.conn, self.app_id, self.uid, entry=entry, now=self.now, sinks=self.services.sinks
        )
        if is_new and self.channel == "reconciliation":
            await mismatches.add(
                self.conn, self.app_id,
                platform=entry.platform, kind="missed_entry", subject=entry.key, detail=entry.kind, now=self.now,
            )  # fmt: skip
        return is_new

    async def report(self, purchase: PurchaseEvent) -> None:
        """Report what the platform has taken or given back."""
        await self.services.sinks.report(self.conn, self.app_id, purchase, now=self.now)


async def begin_posting(
    services: Services, conn: Connection, app_id: str, uid: str, *, channel: Channel
) -> Posting:
    """Lock a user, whose payments no other transaction applies then. Deactivated users are locked too."""
    await users.lock_all(conn, app_id, uids=[uid])
    return Posting(services, conn, app_id, uid, channel, services.clock.now(app_id))
