"""The links of mails by which somebody says that a change of an account was not his own."""

from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

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
    """What a link names."""

    app_id: str
    uid: str
    address: str
    """The address that the mail with the link was sent to."""
    frees: bool
    """Whether the mail asked to confirm the address, so that it becomes free."""


def not_me_link(services: Services, app_id: str, uid: str, *, address: str, frees: bool) -> str:
    """Return a link that only this server can make. It stays valid if codes are revoked by whoever took over."""
    expires_s = (services.clock.now(app_id) + _LIFETIME).timestamp()
    token = services.keyring.encrypt(dumps([app_id, uid, address, frees, expires_s]).decode(), aad=_AAD)
    return f"{services.settings.public_url}/account/not-me?token={quote(token)}"


def read_token(services: Services, token: str) -> NotMe:
    """Return what a token names. Raises `InvalidParameter`."""
    try:
        app_id, uid, address, frees, expires_s = loads(services.keyring.decrypt(token, aad=_AAD))
    except (DecryptionFailed, ValueError):
        raise InvalidParameter("token is not valid") from None
    if services.clock.now(app_id).timestamp() >= expires_s:
        raise InvalidParameter("token has expired")
    return NotMe(app_id, uid, address, frees)


async def refuse_changes(services: Services, conn: Connection, said: NotMe) -> None:
    """End all sessions of the account, its freeze, and what is under way. `conn` is in a transaction.

    An address that was to be confirmed becomes free. Otherwise the password is dropped: its owner can set a new one
    by a mail, but whoever has changed the account cannot log in any more.
    """
    app_id, uid, now = said.app_id, said.uid, services.clock.now(said.app_id)
    addresses = await emails.lock(conn, app_id, uid)
    await sessions.end(conn, app_id, uid, cache=services.sessions, now=now)
    await codes.revoke(conn, app_id, uid, now=now)
    await bp_auth.revoke(conn, app_id, uid)
    await emails.drop_pending(conn, app_id, uid)
    await freezes.recover(conn, app_id, uid)
    if addresses.current == said.address:
        await passwords.delete(conn, app_id, uid)
        if said.frees:
            await emails.free(conn, app_id, uid, address=said.address)
