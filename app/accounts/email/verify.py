"""The link that verifies an address, and whether the address of a user is verified (§3.2, §4.7)."""

from aiohttp import web
from pydantic import Field

from app.accounts.errors import CodeNotSent
from app.accounts.mails.hosted import message_page
from app.accounts.mails.mails import send_notice, sends_mails, with_query
from app.accounts.mails.texts import language_of
from app.accounts.proofs.addresses import email_config
from app.accounts.reports import report_address
from app.http.callers.limits import check_address
from app.http.html import wants_html
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Query
from app.http.rows.replies import Empty
from app.services import Services
from storage.accounts import bp_auth, emails
from storage.accounts.codes import VERIFY_LINK, CodeInvalid, RightCode
from storage.accounts.emails import identity_of
from storage.configs.kinds.limits import LIMITS
from storage.mail.addresses import MAX_CHARACTERS, normalized
from storage.postgres.database import Connection, TransactionConflict
from streams.wire.codec import ZERO_TIME, rfc3339
from streams.wire.errors import InvalidParameter, StoreError
from streams.wire.model import Model

_CODE_CHARACTERS = 256


class VerifyQuery(Model):
    verify_code: str | None = Field(default=None, max_length=_CODE_CHARACTERS)
    """The code of the link."""
    email: str | None = Field(default=None, max_length=MAX_CHARACTERS)
    """If given, the code must be one for this address."""


class VerifyResult(Model):
    verified: bool
    verified_time: str
    """The zero time if the address is not verified."""


class VerifyResultReply(Model):
    verify_result: VerifyResult


async def verify(call: Call, query: Query[VerifyQuery]) -> Empty | web.Response:
    """Verify an email address by the link of an email.

    The link can be opened again until it expires. Browsers get a page, unless the app's config has a redirect.
    """
    code = await _verified(call, query)
    if target := email_config(call.services, code.app_id).verify_redirect_url:
        return web.Response(status=301, headers={"Location": with_query(target, verified="true")})
    if wants_html(call.request):
        return message_page(call.request, code.app_id, "verified")
    return Empty()


async def verify_page(call: Call, query: Query[VerifyQuery]) -> web.Response:
    """Open the page that verifies an email address."""
    code = await _verified(call, query)
    return message_page(call.request, code.app_id, "verified")


async def preview_link(call: Call) -> None:
    """Check that the server responds.

    Programs that check the links in emails send such requests. Nothing is verified.
    """


async def _verified(call: Call, query: VerifyQuery) -> RightCode:
    try:
        return await verify_address(call.services, query, language=language_of(call.request))
    except CodeInvalid:
        # Only wrong codes are counted, so that no limit prevents anybody from opening a valid link.
        limits = call.services.configs.singleton(LIMITS, call.app_id)  # A link names no app, so `call` has none.
        await check_address(call.services, limits, call.request, call.caller, name="email_address")
        raise


async def verify_address(services: Services, query: VerifyQuery, *, language: str) -> RightCode:
    """Verify the address of a code. If the address was pending, it becomes the current one of the user.

    `language` is the language of the notice to the replaced address. Raises `CodeNotSent` if nothing can be stored
    at the moment.
    """
    async with services.database.connection() as conn:
        code = await services.codes.find(
            conn, VERIFY_LINK, code=query.verify_code, now=services.clock.now, field="verify_code"
        )
    email_config(services, code.app_id)
    _check_email(services, code, query.email)
    try:
        async with services.database.transaction() as conn:
            await _use_link(services, conn, code, language=language)
    except TransactionConflict:
        raise
    except StoreError as error:  # Nothing has been verified, so the link can be opened again.
        raise CodeNotSent from error
    return code


async def _use_link(services: Services, conn: Connection, code: RightCode, *, language: str) -> None:
    app_id, uid, address, now = code.app_id, code.uid, code.target, services.clock.now(code.app_id)
    assert uid is not None, "links are made for users"
    addresses = await emails.lock(conn, app_id, uid)
    if address == addresses.current:
        await emails.mark_verified(conn, app_id, address=address, now=now)
        return
    if address != addresses.pending:
        raise CodeInvalid("verify_code is for an address that the user no longer has")
    old = addresses.current
    try:
        kept = await emails.set_current(conn, app_id, uid, address=address, old=old, now=now)
    except emails.AddressTaken:
        raise CodeInvalid("verify_code is for an address that now belongs to another user") from None
    await report_address(services, conn, app_id, uid, replaces=old)
    await emails.drop_pending(conn, app_id, uid)
    if old:
        await bp_auth.revoke_for(conn, identity_of(app_id, old))
    if addresses.verified and sends_mails(services, app_id):
        event = "address_changed" if kept else "address_changed_finally"
        await send_notice(services, conn, app_id, uid, event, to=old, language=language)


def _check_email(services: Services, code: RightCode, email: str | None) -> None:
    if email is None:
        return
    address = normalized(email, development=services.settings.development)
    if address is None:
        raise InvalidParameter("email must be an email address")
    if address != code.target:
        raise CodeInvalid("verify_code is for another address")


async def verify_result(call: Call) -> VerifyResultReply:
    """Read whether the user's email address is verified.

    If another address is about to replace it, the result is that of the new one.
    """
    email_config(call.services, call.app_id)
    async with call.services.database.connection() as conn:
        addresses = await emails.find(conn, call.app_id, call.caller.user)
    verified = addresses.verified and not addresses.pending
    at = addresses.verified_at if verified else None
    return VerifyResultReply(
        verify_result=VerifyResult(verified=verified, verified_time=ZERO_TIME if at is None else rfc3339(at))
    )
