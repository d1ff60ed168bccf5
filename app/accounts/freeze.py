"""The end of the freeze of an account that is used again."""

from app.accounts.reports import report
from app.services import Services
from storage import freezes
from storage.postgres import Connection


async def lift_freeze(services: Services, conn: Connection, app_id: str, uid: str) -> None:
    """End the freeze of a user, if there is one. `conn` is in a transaction that has locked the user."""
    if await freezes.recover(conn, app_id, uid):
        await report(services, conn, app_id, uid, "recovered")
