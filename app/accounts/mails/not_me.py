"""The links in emails with which the owner of an address reports that somebody else has changed the account."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from urllib.parse import quote

from app.account_states import lift_freeze
from app.accounts.reports import report_address, report_change
from app.accounts.sessions.revocation import revoke_access
from app.http.links import public_link
from app.services import Services
from storage.accounts import (
    bp_auth,
    earlier_emails,
    emails,
    identities,
    login_networks,
    passwords,
    sessions,
    single_use,
    users,
)
from storage.accounts.emails import Addresses, AddressTaken, identity_of
from storage.accounts.identities import Identity
from storage.configs.kinds.auth import AUTH
from storage.postgres.database import Connection, TransactionConflict
from storage.secrets import DecryptionFailed
from storage.userdata import freezes
from streams.wire.codec import dumps, loads
from streams.wire.errors import InvalidParameter

LIFETIME = earlier_emails.RESTORABLE
"""How long a link is valid."""
_AAD = "accounts/not_me"
_LOGGED_OUT = "not_me"

Outcome = Literal["freed", "secured", "restored", "taken", "logged_out", "gone"]
"""`freed`: the address was removed from the account. `secured`: the account keeps the address. `restored`: the
account has the address again. `taken`: the address belongs to another user, so only the sessions, the codes and the
freeze were ended. `logged_out`: the account no longer has the address, so only the sessions and the codes were
ended. `gone`: the account no longer has the address, and nothing was changed, because a link has ended the sessions
and the codes before, or because this link may not end them."""
Change = Literal[
    "removes_address",
    "restores_address",
    "logs_out",
    "deletes_password",
    "unlinks",
    "cancels_address",
    "recovers",
    "deactivates",
]
_Relation = Literal["current", "earlier", "pending"]
"""The relation of a link's address to the account: its user logs in with it, it can be restored, or it is not
confirmed."""


@dataclass(frozen=True, slots=True)
class NotMe:
    """The content of the token in a link."""

    app_id: str
    uid: str
    address: str
    """The address that the email with the link was sent to."""
    frees: bool
    """Whether the email asked to confirm the address. If so, the link removes the address from the account."""


def not_me_link(services: Services, app_id: str, uid: str, *, address: str, frees: bool) -> str:
    """Return a link that only this server can make. It stays valid when an attacker revokes codes."""
    expires_s = (services.clock.now(app_id) + LIFETIME).timestamp()
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


class Refusal(NamedTuple):
    """The outcome of a refusal. `replaced` is a verified address that the account had until now."""

    outcome: Outcome
    replaced: str = ""


async def refuse_changes(services: Services, conn: Connection, named: NotMe) -> Refusal:
    """End all access to the account, and its freeze. `conn` is in a transaction.

    The password and recently bound identities are deleted, so that whoever has changed the account cannot log in
    again. The owner of the address can set a new password by email. If the email asked to confirm the address, the
    address is removed from the account instead. A proven address that the account had before is restored.

    If the account does not have the address afterwards, the link only ends the sessions and the codes, once per
    address. Its reader may be the owner whose address somebody else has replaced, or somebody who had the account
    for a while.
    """
    app_id, uid, address = named.app_id, named.uid, named.address
    now = services.clock.now(app_id)
    await emails.lock_with_claimant(conn, app_id, uid, address=address)
    addresses = await emails.find(conn, app_id, uid)
    relation = await _relation(conn, named, addresses, now=now)
    if relation is None:
        if not await _may_log_out(services, conn, named):
            return Refusal("gone")
        until = now + LIFETIME
        await single_use.use_once(conn, app_id, what=_LOGGED_OUT, value=_value(named), now=now, until=until)
        await revoke_access(services, conn, app_id, uid, now=now)
        return Refusal("logged_out")
    changes = _changes(named, relation, addresses)
    await revoke_access(services, conn, app_id, uid, now=now)
    await lift_freeze(services, conn, app_id, uid)
    restores = "restores_address" in changes
    if restores and not await _restored(services, conn, named, replaces=addresses.current, now=now):
        return Refusal("taken")
    if "deletes_password" in changes:
        await passwords.delete(conn, app_id, uid)
        await login_networks.forget(conn, app_id, uid)
    if "unlinks" in changes:
        since = now - earlier_emails.RESTORABLE
        for platform in await identities.unlink_newest(conn, app_id, uid, since=since):
            await report_change(services, conn, app_id, uid, "unlinked", platform=platform)
    if named.frees:
        await _unlink(services, conn, identity_of(app_id, address), uid=uid, now=now)
    if "removes_address" in changes:
        return Refusal("freed")
    if restores:
        return Refusal("restored", addresses.current if addresses.verified else "")
    return Refusal("secured")


async def changes_of(services: Services, conn: Connection, named: NotMe) -> list[Change]:
    """Return the changes that `refuse_changes` would make now; empty if there are none."""
    app_id, uid = named.app_id, named.uid
    addresses, account = await emails.find(conn, app_id, uid), await identities.find_account(conn, app_id, uid)
    relation = await _relation(conn, named, addresses, now=services.clock.now(app_id))
    if account is None:
        return []
    if relation is None:
        return ["logs_out"] if await _may_log_out(services, conn, named) else []
    changes = _changes(named, relation, addresses)
    if named.frees and relation == "current" and len(account.identities) == 1:
        return [*changes, "deactivates"]
    return [*changes, "recovers"] if account.user.status == "frozen" else changes


async def _may_log_out(services: Services, conn: Connection, named: NotMe) -> bool:
    """Return whether a link may end the sessions of an account that does not have its address.

    A link to an address that somebody had just entered may not, because the address may have been a mistake.
    """
    if named.frees or await users.find(conn, named.app_id, named.uid) is None:
        return False
    now = services.clock.now(named.app_id)
    return not await single_use.is_used(conn, named.app_id, what=_LOGGED_OUT, value=_value(named), now=now)


def _value(named: NotMe) -> str:
    return f"{named.uid} {named.address}"


def _changes(named: NotMe, relation: _Relation, addresses: Addresses) -> list[Change]:
    """Return the changes that a link makes, apart from the freeze, in the order in which the page lists them."""
    done: dict[Change, bool] = {
        "removes_address": named.frees or relation == "pending",
        "restores_address": relation == "earlier",
        "logs_out": True,
        "deletes_password": relation != "pending",
        "unlinks": relation != "pending" and not named.frees,
        "cancels_address": addresses.pending not in {"", named.address},
    }
    return [change for change, happens in done.items() if happens]


async def _relation(conn: Connection, named: NotMe, addresses: Addresses, *, now: datetime) -> _Relation | None:
    app_id, uid, address = named.app_id, named.uid, named.address
    if address == addresses.current:
        return "current"
    if not named.frees and await earlier_emails.is_restorable(conn, app_id, uid, address=address, now=now):
        return "earlier"
    return "pending" if address == addresses.pending else None


async def _restored(services: Services, conn: Connection, named: NotMe, *, replaces: str, now: datetime) -> bool:
    """Restore an earlier address of the account. Return false if it belongs to another user.

    A user who has it without a strong proof loses it. Restoring it is no proof either: it is as proven as it was.
    """
    app_id, uid, identity = named.app_id, named.uid, identity_of(named.app_id, named.address)
    claimant = await emails.claimant(conn, app_id, address=named.address)
    if claimant is not None:
        await _take_from(services, conn, identity, uid=claimant, now=now)
    elif await identities.user_of(conn, identity) is not None:
        return False
    try:
        await emails.set_current(conn, app_id, uid, address=named.address, old=replaces, now=now, weak=True)
    except AddressTaken:
        raise TransactionConflict from None  # Somebody has signed up with it meanwhile.
    await report_address(services, conn, app_id, uid, replaces=replaces)
    return True


async def _take_from(services: Services, conn: Connection, identity: Identity, *, uid: str, now: datetime) -> None:
    await sessions.end(conn, identity.app_id, uid, cache=services.sessions, now=now, identity=identity)
    await bp_auth.revoke_for(conn, identity)
    await _unlink(services, conn, identity, uid=uid, now=now)


async def _unlink(services: Services, conn: Connection, identity: Identity, *, uid: str, now: datetime) -> None:
    """Remove an address from a user who does not own it, even if it is the last login method."""
    if await identities.unlink(conn, identity, uid=uid):
        await report_change(services, conn, identity.app_id, uid, "unlinked", platform=identity.platform)
        for_s = services.configs.singleton(AUTH, identity.app_id).deactivation.freeze_s
        if await freezes.freeze_if_unreachable(conn, identity.app_id, uid, now=now, for_s=for_s):
            await report_change(services, conn, identity.app_id, uid, "frozen")
