"""The endpoints that verify an address, and that say whether the address of a user is verified (§3.2, §4.7)."""

from aiohttp import web

from app.accounts.email.confirm_page import confirm_page
from app.accounts.email.verify_link import VerifyQuery, find_link, use_link, wrong_links_counted
from app.accounts.mails.hosted import message_page
from app.accounts.mails.mails import with_query
from app.accounts.proofs.addresses import email_config
from app.http.html import wants_html
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Query
from app.http.rows.replies import Empty
from storage.accounts import emails
from storage.accounts.codes import RightCode
from streams.wire.codec import ZERO_TIME, rfc3339
from streams.wire.model import Model


class VerifyResult(Model):
    verified: bool
    verified_time: str
    """The zero time if the address is not verified."""


class VerifyResultReply(Model):
    """Whether the user's email address is verified."""

    verify_result: VerifyResult


async def verify(call: Call, query: Query[VerifyQuery]) -> Empty | web.Response:
    """Verify an email address by the link of an email.

    A browser (`Accept` contains `text/html`) gets a page with a button, unless the app's config has
    `confirm_page: false`, and nothing is verified yet. For any other client, opening the link verifies the address.
    Programs that scan emails open links too. Therefore the first code, password reset or button after that removes
    all other ways to log in.

    The link can be opened again until it expires.
    """
    async with wrong_links_counted(call):
        code = await find_link(call.services, query)
        if wants_html(call.request) and (page := await confirm_page(call, code)) is not None:
            return page
        await use_link(call, code, pressed=False)
    return _answer(call, code)


async def verify_by_button(call: Call, query: Query[VerifyQuery]) -> Empty | web.Response:
    """Verify an email address by the button of its page.

    If the link was opened by a client without the page before, all sessions of the user end and all other ways to
    log in are removed, because whoever signed up may not be the owner of the address.
    """
    code, ended = await _press(call, query)
    return _answer(call, code, ended=ended)


async def verify_page(call: Call, query: Query[VerifyQuery]) -> web.Response:
    """Open the page that verifies an email address."""
    async with wrong_links_counted(call):
        code = await find_link(call.services, query)
        if (page := await confirm_page(call, code)) is not None:
            return page
        await use_link(call, code, pressed=False)
    return _verified_page(call, code)


async def verify_by_page(call: Call, query: Query[VerifyQuery]) -> web.Response:
    """Verify an email address by the button of the page."""
    code, ended = await _press(call, query)
    return _verified_page(call, code, ended=ended)


async def preview_link(call: Call) -> None:
    """Check that the server responds.

    Programs that check the links in emails send such requests. Nothing is verified.
    """


async def _press(call: Call, query: VerifyQuery) -> tuple[RightCode, bool]:
    """Return the code, and whether all other ways to log in were removed."""
    async with wrong_links_counted(call):
        code = await find_link(call.services, query)
        return code, await use_link(call, code, pressed=True)


def _answer(call: Call, code: RightCode, *, ended: bool = False) -> Empty | web.Response:
    if target := email_config(call.services, code.app_id).verify_redirect_url:
        return web.Response(status=301, headers={"Location": with_query(target, verified="true")})
    return _verified_page(call, code, ended=ended) if wants_html(call.request) else Empty()


def _verified_page(call: Call, code: RightCode, *, ended: bool = False) -> web.Response:
    return message_page(call.request, code.app_id, "verified_ended" if ended else "verified")


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
