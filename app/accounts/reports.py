"""Reports of changes of accounts to the app's event sinks."""

from app.services import Services
from storage.events.outbox import AccountChange, AccountEvent
from storage.postgres.database import Connection


async def report_change(
    services: Services,
    conn: Connection,
    app_id: str,
    uid: str,
    change: AccountChange,
    *,
    platform: str | None = None,
) -> None:
    """Report a change of an account, in the transaction of `conn`. `platform` is that of the changed identity."""
    event = AccountEvent(user_id=uid, change=change, platform=platform)
    await services.sinks.report(conn, app_id, event, now=services.clock.now(app_id))


async def report_address(services: Services, conn: Connection, app_id: str, uid: str, *, replaces: str) -> None:
    """Report a new address with which a user logs in, and the removal of the address that it `replaces`, if any."""
    if replaces:
        await report_change(services, conn, app_id, uid, "unlinked", platform="email")
    await report_change(services, conn, app_id, uid, "linked", platform="email")
