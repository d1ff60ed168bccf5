"""Refuses banned users, and the identities of banned users who were deactivated."""

from datetime import datetime

from app.accounts.errors import UserBanned
from app.services import Services
from storage.accounts import bans, users
from storage.accounts.identities import Identity
from storage.postgres.database import Connection


async def refuse_banned(conn: Connection, app_id: str, uid: str, *, now: datetime) -> None:
    """Raise `UserBanned` if a user is banned. `conn` is in a transaction that has locked the user."""
    user = await users.find(conn, app_id, uid)
    if user is not None and (ban := user.ban(now=now)) is not None:
        raise UserBanned(ban)


async def refuse_banned_identity(services: Services, conn: Connection, identity: Identity) -> None:
    """Raise `UserBanned` if an identity without a user must not get one, because its last user is banned."""
    now = services.clock.now(identity.app_id)
    if (ban := await bans.of_identity(conn, identity, keyring=services.keyring, now=now)) is not None:
        raise UserBanned(ban)
