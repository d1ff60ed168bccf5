"""The links in mails with which the owner of an address reports that somebody else has changed the account."""

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

from app.accounts.mail_links import public_link
from app.services import Services
from storage import bp_auth, codes, emails, freezes, passwords, sessions
from storage.postgres import Connection
from storage.secrets import DecryptionFailed
from streams.wire.codec import dumps, loads
from streams.wire.errors import InvalidParameter

_LIFETIME = timedelta(days=7)
_AAD = "accounts/not_me"


@dataclass(frozen=True, slots=True)
class NotMe:
    """The content of the token in a link."""

    app_id: str
    uid: str
    address: str
    """The address that the mail with the link was sent to."""
    frees: bool
    """Whether the mail asked to confirm the address. It is then removed from the account."""


def not_me_link(services: Services, app_id: str, uid: str, *, address: str, frees: bool) -> str:
    """Return a link that only this server can make. It stays valid when codes are revoked, even by an attacker."""
    expires_s = (services.clock.now(app_id) + _LIFETIME).timestamp()
    token = services.keyring.encrypt(dumps([app_id, uid, address, frees, expires_s]).decode(), aad=_AAD)
    return public_link(services, f"/account/not-me?token={quote(token)}")


def read_token(services: Services, token: str) -> NotMe:
    """Return the content of a token. Raises `InvalidParameter`."""
    try:
        app_id, uid, address, frees, expires_s = loads(services.keyring.decrypt(token, aad=_AAD))
    except (DecryptionFailed, ValueError):
        raise InvalidParameter("token is not valid") from None
    if services.clock.now(app_id).timestamp() >= expires_s:
        raise InvalidParameter("token has expired")
    return NotMe(app_id, uid, address, frees)


async def refuse_changes(services: Services, conn: Connection, named: NotMe) -> None:
    """End all sessions and the freeze of the account, and revoke its codes and tokens. `conn` is in a transaction.

    The password is deleted, so that whoever has changed the account cannot log in again. The owner of the address
    can set a new one by mail, unless the mail asked to confirm the address, which is then removed from the account.
    """
    app_id, uid, now = named.app_id, named.uid, services.clock.now(named.app_id)
    addresses = await emails.lock(conn, app_id, uid)
    await sessions.end(conn, app_id, uid, cache=services.sessions, now=now)
    await codes.revoke(conn, app_id, uid, now=now)
    await bp_auth.revoke(conn, app_id, uid)
    await emails.drop_pending(conn, app_id, uid)
    await freezes.recover(conn, app_id, uid)
    if addresses.current == named.address:
        await passwords.delete(conn, app_id, uid)
        if named.frees:
            await emails.free(conn, app_id, uid, address=named.address)
