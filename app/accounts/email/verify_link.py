"""What a request with the link that verifies an address does: it finds the link, and proves its address (§3.2).

To open the link is a weak proof. To press the button behind it is a strong one (`app/accounts/mails`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import Field

from app.accounts.errors import CodeNotSent
from app.accounts.mails.first_proof import first_proof
from app.accounts.mails.mails import send_notice, sends_mails
from app.accounts.proofs.addresses import email_config
from app.accounts.reports import report_address
from app.http.callers.limits import check_address
from app.http.links import LinkAddress
from app.http.rows.endpoint import Call
from app.services import Services
from storage.accounts import bp_auth, emails
from storage.accounts.codes import VERIFY_LINK, CodeInvalid, RightCode
from storage.accounts.emails import Addresses, identity_of
from storage.configs.kinds.limits import LIMITS
from storage.mail.addresses import MAX_CHARACTERS, normalized
from storage.postgres.database import Connection, TransactionConflict
from streams.wire.errors import InvalidParameter, StoreError
from streams.wire.model import Model

_CODE_CHARACTERS = 256


class VerifyQuery(Model):
    verify_code: str | None = Field(default=None, max_length=_CODE_CHARACTERS)
    """The code of the link."""
    email: LinkAddress | None = Field(default=None, max_length=MAX_CHARACTERS)
    """If given, the code must be one for this address."""


@asynccontextmanager
async def wrong_links_counted(call: Call) -> AsyncIterator[None]:
    """Count a link that is wrong, and no others, so that no limit prevents anybody from opening a valid link."""
    try:
        yield
    except CodeInvalid:
        limits = call.services.configs.singleton(LIMITS, call.app_id)  # A link names no app, so `call` has none.
        await check_address(call.services, limits, call.request, call.caller, name="email_address")
        raise


async def find_link(services: Services, query: VerifyQuery) -> RightCode:
    """Return the code of a link. Raises errors of codes, and `ConfigInvalid` if its app allows no addresses."""
    async with services.database.connection() as conn:
        code = await services.codes.find(
            conn, VERIFY_LINK, code=query.verify_code, now=services.clock.now, field="verify_code"
        )
    email_config(services, code.app_id)
    _check_email(services, code, query.email)
    return code


def _check_email(services: Services, code: RightCode, email: str | None) -> None:
    if email is None:
        return
    address = normalized(email, development=services.settings.development)
    if address is None:
        raise InvalidParameter("email must be an email address")
    if address != code.target:
        raise CodeInvalid("verify_code is for another address")


def user_of(code: RightCode) -> str:
    assert code.uid is not None, "links are made for users"
    return code.uid


def check_still_had(code: RightCode, addresses: Addresses) -> None:
    """Raise `CodeInvalid` unless the address of a link is the current or the pending one of its user."""
    if code.target not in {addresses.current, addresses.pending}:
        raise CodeInvalid("verify_code is for an address that the user no longer has")


async def use_link(call: Call, code: RightCode, *, pressed: bool) -> bool:
    """Prove the address of a link. If it was pending, it becomes the current one of the user.

    `pressed`: the button was pressed. Otherwise, the link was opened. Return whether this was the first strong
    proof after a weak one, so that all other ways to log in were removed. Raises `CodeNotSent` if nothing can be
    stored at the moment.
    """
    try:
        async with call.services.database.transaction() as conn:
            return await _prove(call, conn, code, pressed=pressed)
    except TransactionConflict:
        raise
    except StoreError as error:  # Nothing has been verified, so the link can be opened again.
        raise CodeNotSent from error


async def _prove(call: Call, conn: Connection, code: RightCode, *, pressed: bool) -> bool:
    app_id, address, now = code.app_id, code.target, call.services.clock.now(code.app_id)
    addresses = await emails.lock(conn, app_id, user_of(code))
    check_still_had(code, addresses)
    if address != addresses.current:
        await _replace(call, conn, code, addresses, weak=not pressed)
        return False
    if pressed and addresses.weakly_proven:
        identity = identity_of(app_id, address)
        return await first_proof(call.services, conn, identity, by="button", now=now, keep_code=code.code_id)
    await emails.mark_verified(conn, app_id, address=address, now=now, weak=not pressed)
    return False


async def _replace(call: Call, conn: Connection, code: RightCode, addresses: Addresses, *, weak: bool) -> None:
    """Make a pending address the current one."""
    services, app_id, uid, old = call.services, code.app_id, user_of(code), addresses.current
    now = services.clock.now(app_id)
    try:
        kept = await emails.set_current(conn, app_id, uid, address=code.target, old=old, now=now, weak=weak)
    except emails.AddressTaken:
        raise CodeInvalid("verify_code is for an address that now belongs to another user") from None
    await report_address(services, conn, app_id, uid, replaces=old)
    await emails.drop_pending(conn, app_id, uid)
    if old:
        await bp_auth.revoke_for(conn, identity_of(app_id, old))
    if addresses.verified and sends_mails(services, app_id):
        event = "address_changed" if kept else "address_changed_finally"
        await send_notice(call, conn, app_id, uid, event, to=old)
