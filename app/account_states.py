"""Changes to the state of an account, made by its user, an app server, an operator or a job."""

from datetime import datetime

from app.services import Services
from storage.accounts import bans, bp_auth, codes, sessions
from storage.accounts.identities import UserAccount
from storage.accounts.users import Ban
from storage.configs.kinds.auth import AUTH
from storage.events.outbox import AccountChange, AccountEvent
from storage.postgres.database import Connection
from storage.userdata import erasures, freezes
from storage.userdata.erasures import Cause
from streams.wire.codec import rfc3339


async def freeze(services: Services, conn: Connection, app_id: str, uid: str, *, now: datetime) -> None:
    """Freeze an active user until deactivation. `conn` is in a transaction that has locked the user."""
    for_s = services.configs.singleton(AUTH, app_id).deactivation.freeze_s
    await freezes.freeze(conn, app_id, uid, now=now, for_s=for_s)
    await _report(services, conn, app_id, uid, "frozen")
    await codes.revoke(conn, app_id, uid, now=now)
    await bp_auth.revoke(conn, app_id, uid)
    await sessions.reread(conn, app_id, uid, cache=services.sessions)


async def lift_freeze(services: Services, conn: Connection, app_id: str, uid: str) -> None:
    """End the freeze of a user, if there is one. `conn` is in a transaction that has locked the user."""
    if await freezes.recover(conn, app_id, uid):
        await _report(services, conn, app_id, uid, "recovered")


async def impose_ban(
    services: Services, conn: Connection, app_id: str, uid: str, *, ban: Ban, now: datetime
) -> int:
    """Ban a user, or replace the ban. Return the number of ended sessions.

    `conn` is in a transaction that has locked the user.
    """
    await bans.put(conn, app_id, uid, ban=ban)
    ended = await sessions.end(conn, app_id, uid, cache=services.sessions, now=now)
    await codes.revoke(conn, app_id, uid, now=now)
    await bp_auth.revoke(conn, app_id, uid)
    await _report(services, conn, app_id, uid, "banned", until=ban.until)
    return ended


async def lift_ban(services: Services, conn: Connection, app_id: str, uid: str) -> None:
    """End the ban of a user, who may be deactivated. `conn` is in a transaction that has locked the user."""
    await bans.lift(conn, app_id, uid)
    await _report(services, conn, app_id, uid, "unbanned")


async def close(services: Services, conn: Connection, app_id: str, account: UserAccount, *, cause: Cause) -> None:
    """Deactivate a user for good. `conn` is in a transaction that has locked the account."""
    await erasures.deactivate(
        conn,
        app_id,
        account.user.uid,
        linked=account.identities,
        cause=cause,
        now=services.clock.now(app_id),
        cache=services.sessions,
        keyring=services.keyring,
    )
    await _report(services, conn, app_id, account.user.uid, "deactivated")


async def _report(
    services: Services,
    conn: Connection,
    app_id: str,
    uid: str,
    change: AccountChange,
    *,
    until: datetime | None = None,
) -> None:
    event = AccountEvent(user_id=uid, change=change, until=None if until is None else rfc3339(until))
    await services.sinks.report(conn, app_id, event, now=services.clock.now(app_id))
