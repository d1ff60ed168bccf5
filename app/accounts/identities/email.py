"""The endpoints that bind, verify, change and unbind the email address of a user (§4.7)."""

from pydantic import Field

from app.accounts.bans import refuse_banned_identity
from app.accounts.email.login import check_code, send_link
from app.accounts.errors import EmailAlreadyBound, EmailNotFound, EmailTaken
from app.accounts.identities.login_methods import unlink_identity
from app.accounts.mails.first_proof import first_proof
from app.accounts.mails.mails import notify_user, send_notice
from app.accounts.proofs.addresses import (
    ClientPlatform,
    email_config,
    new_address_in,
    require_enabled,
    require_sending,
    sending_config,
)
from app.accounts.proofs.code_sending import MailDelay, store_change, store_code
from app.accounts.proofs.throttle import remember_network
from app.accounts.reports import report_address
from app.accounts.sessions.caller_lock import lock_caller
from app.accounts.sign_in.views import bp_auth_view
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Body
from storage.accounts import bp_auth, codes, earlier_emails, emails, identities, sessions
from storage.accounts.bp_auth import BpAuth
from storage.accounts.codes import LOGIN_EMAIL, VERIFY_LINK, RightCode
from storage.accounts.emails import Addresses, identity_of
from storage.configs.kinds.auth import AUTH
from storage.mail.addresses import MAX_CHARACTERS
from storage.postgres.database import Connection
from streams.wire.errors import InvalidParameter
from streams.wire.model import Model

_CODE_CHARACTERS = 64


class PlatformOnly(Model):
    platform: ClientPlatform


class NewAddress(PlatformOnly):
    email: str = Field(max_length=MAX_CHARACTERS)


class BindEmail(NewAddress):
    verify_code: str | None = Field(default=None, max_length=_CODE_CHARACTERS)
    """The newest code of type `login_email`, if the app allows logins by code."""


async def send_own_verify_code(call: Call, body: Body[PlatformOnly]) -> None:
    """Resend the link that verifies the user's address.

    If a new address is pending, the link verifies that address.
    """
    config = sending_config(call.services, call.app_id)
    async with call.services.database.connection() as conn:
        addresses = await emails.find(conn, call.app_id, call.caller.user)
    address = addresses.pending or addresses.current
    if not address:
        raise InvalidParameter("the user has no email address")
    if address == addresses.current:
        if addresses.verified:
            raise InvalidParameter("the user's email address is verified already")
        require_enabled(config, "activation")

    async def store(conn: Connection) -> None:
        found = await _locked(call, conn)
        if address not in {found.pending, found.current}:
            raise InvalidParameter("the user's email address was changed meanwhile")
        if address == found.pending:
            now = call.services.clock.now(call.app_id)
            await emails.set_pending(conn, call.app_id, call.caller.user, address=address, now=now)
        await send_link(call, conn, call.caller.user, address=address, platform=body.platform)

    await store_code(call, VERIFY_LINK, address, store=store)


async def bind_email(call: Call, body: Body[BindEmail]) -> MailDelay | None:
    """Add an email address.

    If the app allows logins by code, `verify_code` proves the address. Otherwise the address is shown as not
    verified, and cannot be used, until its link is opened. If too many emails were sent to the address, the link is
    not sent, and the response says when it may be requested. Usually, the response is empty.
    """
    config = email_config(call.services, call.app_id)
    address = new_address_in(call, body.email, field="email")
    if config.code_login:
        right = await check_code(call, LOGIN_EMAIL, body.email, body.verify_code)
        await _bind_proven(call, right)
        return None
    require_sending(call.services, call.app_id)

    async def store(conn: Connection, sends: bool) -> None:  # noqa: FBT001
        if (await _locked(call, conn)).current:
            raise EmailAlreadyBound
        await _store_pending(call, conn, address, body.platform, sends=sends)

    return await store_change(call, address, store=store)


async def _bind_proven(call: Call, right: RightCode) -> None:
    """Give the user the address that a code has proven. Errors about a taken address contain a `bp_auth` for it."""
    services, app_id, uid = call.services, call.app_id, call.caller.user
    identity, now = identity_of(app_id, right.target), services.clock.now(app_id)
    made: BpAuth | None = None
    async with services.database.transaction() as conn:
        await emails.lock_with_claimant(conn, app_id, uid, address=right.target)
        addresses = await _locked(call, conn)
        await refuse_banned_identity(services, conn, identity)
        link = "platform_taken" if addresses.current else None
        # Lock the identity before the code, in the same order as a login that creates the user of the address.
        link = link or await identities.link(conn, identity, uid=uid, now=now, proven=True)
        await codes.use_code(conn, right, now=now)
        await remember_network(call, conn, app_id, uid)
        if addresses.current == right.target:  # The caller has access to both the session and the mailbox.
            await emails.mark_verified(conn, app_id, address=right.target, now=now)
        else:
            await first_proof(services, conn, identity, by="code", now=now)
        if link == "linked":
            await report_address(services, conn, app_id, uid, replaces="")
            await emails.drop_pending(conn, app_id, uid)
            await earlier_emails.give_back(conn, app_id, uid, address=right.target, now=now)
        else:
            within_s = services.configs.singleton(AUTH, app_id).bp_auth_s
            made = await bp_auth.issue(conn, identity, proven=True, now=now, within_s=within_s)
    view = bp_auth_view(made)
    credential = None if view is None else view.model_dump()
    match link:
        case "platform_taken":
            raise EmailAlreadyBound(bp_auth=credential)
        case "identity_taken":
            raise EmailTaken(bp_auth=credential)


async def change_email(call: Call, body: Body[NewAddress]) -> MailDelay | None:
    """Change the user's email address.

    The new address replaces the old one when its link is opened. The old one gets an email about the change. If too
    many emails were sent to the new address, its link is not sent, and the response says when it may be requested.
    Usually, the response is empty.
    """
    require_sending(call.services, call.app_id)
    address = new_address_in(call, body.email, field="email")
    async with call.services.database.connection() as conn:
        notified = (await emails.find(conn, call.app_id, call.caller.user)).current

    async def store(conn: Connection, sends: bool) -> None:  # noqa: FBT001
        addresses = await _locked(call, conn)
        if not (addresses.current or addresses.pending):
            raise EmailNotFound
        if address == addresses.current:
            raise InvalidParameter("email is the user's address already")
        await _store_pending(call, conn, address, body.platform, sends=sends)
        if old := addresses.current:
            await send_notice(call, conn, call.app_id, call.caller.user, "address_changing", to=old)

    return await store_change(call, address, store=store, notified=notified)


async def _store_pending(
    call: Call, conn: Connection, address: str, platform: ClientPlatform, *, sends: bool
) -> None:
    """Store an address that is not verified yet. With `sends`, send the link that verifies it."""
    identity = identity_of(call.app_id, address)
    if await identities.user_of(conn, identity) is not None:
        raise EmailTaken
    await refuse_banned_identity(call.services, conn, identity)
    uid, now = call.caller.user, call.services.clock.now(call.app_id)
    await emails.set_pending(conn, call.app_id, uid, address=address, now=now)
    if sends:
        await send_link(call, conn, uid, address=address, platform=platform)


async def unbind_email(call: Call) -> None:
    """Unbind the user's email address.

    The sessions that were made with it end. It cannot be unbound if it is the last way to log in as the user.
    """
    services, app_id, uid, now = call.services, call.app_id, call.caller.user, call.services.clock.now(call.app_id)
    async with services.database.transaction() as conn:
        addresses = await _locked(call, conn)
        dropped = await emails.drop_pending(conn, app_id, uid)
        if not addresses.current:
            if not dropped:
                raise EmailNotFound
            return
        identity = identity_of(app_id, addresses.current)
        kept = await earlier_emails.keep_current_address(conn, app_id, uid, now=now)
        event = "address_removed" if kept else "address_removed_finally"
        await notify_user(call, conn, app_id, uid, event)
        await unlink_identity(services, conn, identity, uid=uid)
        await sessions.end(conn, app_id, uid, cache=services.sessions, now=now, identity=identity)
        await bp_auth.revoke_for(conn, identity)


async def _locked(call: Call, conn: Connection) -> Addresses:
    """Return the addresses of the user, locked."""
    await lock_caller(call, conn)
    return await emails.find(conn, call.app_id, call.caller.user)
