"""Revocation of all access to an account."""

from datetime import datetime

from app.services import Services
from storage.accounts import bp_auth, codes, emails, sessions
from storage.postgres.database import Connection


async def revoke_access(
    services: Services,
    conn: Connection,
    app_id: str,
    uid: str,
    *,
    now: datetime,
    keep: str | None = None,
    keep_code: str | None = None,
) -> None:
    """End the sessions of a user, except the session `keep`, and revoke the user's codes and tokens.

    `keep_code` is the id of a code that can be used again, because it is that of a link.

    A pending address is deleted: revoking the codes invalidates its links, but the user could request another link
    to it. `conn` is in a transaction that has locked the user.
    """
    await sessions.end(conn, app_id, uid, cache=services.sessions, now=now, keep=keep)
    await codes.revoke(conn, app_id, uid, now=now, keep=keep_code)
    await emails.drop_pending(conn, app_id, uid)
    await bp_auth.revoke(conn, app_id, uid)
