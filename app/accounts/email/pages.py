"""The hosted pages for an address that is verified, for a new password, and for "this was not me"."""

from html import escape
from urllib.parse import parse_qs

from aiohttp import web
from pydantic import Field, SecretStr

from app.accounts.email.reset import find_reset, set_password
from app.accounts.email.verify import verify_by_page, verify_page
from app.accounts.errors import CodeNotSent, TooManyFailedLogins, UserBanned
from app.accounts.mails.hosted import error_page, hosted_page, labels_for, message_page
from app.accounts.mails.mails import send_notice, sends_mails
from app.accounts.mails.not_me import NotMe, changes_of, read_token, refuse_changes
from app.accounts.passwords.rules import MAX_CHARACTERS
from app.accounts.proofs.addresses import email_config
from app.http.callers.area import Area
from app.http.callers.caller import Access
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query, RawBody
from app.password_hashing import PasswordsBusy
from storage.accounts.codes import CodeEmpty, CodeInvalid, CodeOutOfDate, RightCode
from storage.configs.kinds.auth import AUTH
from streams.wire.errors import DatabaseError, DatabaseUnavailable, InvalidParameter, RateLimited
from streams.wire.model import Model

_TOKEN_CHARACTERS = 2048


class ResetPageQuery(Model):
    random_code: str = Field(default="", max_length=_TOKEN_CHARACTERS)
    """The code of the email."""


class NotMeQuery(Model):
    token: str = Field(default="", max_length=_TOKEN_CHARACTERS)
    """The token of the email."""


async def reset_page(call: Call, query: Query[ResetPageQuery]) -> web.Response:
    """Open the page that asks for a new password."""
    return await _reset_form(call, query.random_code)


async def reset_by_page(call: Call, body: RawBody) -> web.Response:
    """Set a new password with the form of the page."""
    code, password = _form(body, "random_code"), _form(body, "password")
    try:
        right = await _find_reset(call, code)
        await set_password(call, right, SecretStr(password))
    except InvalidParameter:  # Its text is in English and names the field.
        return await _reset_form(call, code, refused=True)
    return message_page(call.request, right.app_id, "reset_done")


async def _find_reset(call: Call, code: str) -> RightCode:
    """Return the code of a link. Raises `ConfigInvalid` if its app no longer allows email addresses."""
    right = await find_reset(call, code)
    email_config(call.services, right.app_id)
    return right


async def _reset_form(call: Call, code: str, *, refused: bool = False) -> web.Response:
    right, labels = await _find_reset(call, code), labels_for(call.request)
    min_characters = call.services.configs.singleton(AUTH, right.app_id).password.min_characters
    invalid, error = "", ""
    if refused:
        invalid = ' aria-invalid="true" aria-describedby="error" autofocus'
        error = f'<p class="error" id="error">{escape(labels["reset_refused"])}</p>'
    form = (
        '<form method="post" action="/account/reset">'
        f'<input type="hidden" name="random_code" value="{escape(code)}">'
        f"<label>{escape(labels['reset_email'])}"
        f'<input type="email" autocomplete="username" readonly value="{escape(right.target)}"></label>'
        f"<div><label>{escape(labels['reset_label'].format(min_characters=min_characters))}"
        f'<input name="password" type="password" required minlength="{min_characters}" '
        f'maxlength="{MAX_CHARACTERS}" autocomplete="new-password"{invalid}></label>{error}</div>'
        f"<button>{escape(labels['reset_button'])}</button></form>"
    )
    return hosted_page(call.request, right.app_id, labels["reset"], form, status=400 if refused else 200)


async def not_me_page(call: Call, query: Query[NotMeQuery]) -> web.Response:
    """Open the page that says what "this was not me" does.

    Opening it changes nothing, because programs that scan emails also open their links.
    """
    named = read_token(call.services, query.token)
    async with call.services.database.connection() as conn:
        changes = await changes_of(call.services, conn, named)
    if not changes:
        return message_page(call.request, named.app_id, "not_me_gone")
    labels, key = labels_for(call.request), "not_me_frees" if named.frees else "not_me_secures"
    listed = "".join(f"<li>{_text(labels[f'change_{change}'], named)}</li>" for change in changes)
    confirm, look = "", ""
    if named.frees:  # The account loses its address, so one press alone must not be enough.
        label = escape(labels["not_me_frees_confirm"])
        confirm, look = f'<label class="check"><input type="checkbox" required>{label}</label>', ' class="danger"'
    form = (
        f"<p>{_text(labels[f'{key}_more'], named)}</p><ul>{listed}</ul>"
        '<form method="post" action="/account/not-me">'
        f'<input type="hidden" name="token" value="{escape(query.token)}">'
        f"{confirm}<button{look}>{escape(labels[f'{key}_button'])}</button></form>"
    )
    return hosted_page(call.request, named.app_id, labels[key], form)


def _text(label: str, named: NotMe) -> str:
    return escape(label.format(email=named.address))


async def not_me(call: Call, body: RawBody) -> web.Response:
    """End all sessions of an account, deleting its password.

    A verified email address that was changed or removed is restored.
    """
    named = read_token(call.services, _form(body, "token"))
    async with call.services.database.transaction() as conn:
        refusal = await refuse_changes(call.services, conn, named)
        if refusal.replaced and sends_mails(call.services, named.app_id):
            await send_notice(
                call,
                conn,
                named.app_id,
                named.uid,
                "address_restored",
                to=refusal.replaced,
                with_link=False,
            )
    return message_page(call.request, named.app_id, f"not_me_{refusal.outcome}", email=named.address)


def _form(body: bytes, name: str) -> str:
    """Return a field of a form, or an empty text."""
    try:
        fields = parse_qs(body.decode(), max_num_fields=10)
    except ValueError:
        return ""
    return fields.get(name, [""])[0]


ACCOUNT_PAGES = Area(
    "account_pages",
    "Account pages",
    "The pages to which the links of emails lead. Browsers get pages for errors too.",
    access=Access.PUBLIC,
    error_page=error_page,
)
_STORES = (DatabaseError, DatabaseUnavailable)
_CODES = (CodeEmpty, CodeOutOfDate, CodeInvalid)
_DOCS = Docs(answers={200: OtherResponse("An HTML page.", "text/html")})

ACCOUNT_PAGE_ROUTES = [
    Endpoint(
        "GET",
        "/account/verify",
        verify_page,
        ACCOUNT_PAGES,
        errors=(*_CODES, *_STORES, RateLimited, CodeNotSent),
        docs=_DOCS,
    ),
    Endpoint(
        "POST",
        "/account/verify",
        verify_by_page,
        ACCOUNT_PAGES,
        errors=(*_CODES, *_STORES, RateLimited, CodeNotSent),
        docs=_DOCS,
    ),
    Endpoint(
        "GET",
        "/account/reset",
        reset_page,
        ACCOUNT_PAGES,
        errors=(*_CODES, *_STORES, TooManyFailedLogins),
        docs=_DOCS,
    ),
    Endpoint(
        "POST",
        "/account/reset",
        reset_by_page,
        ACCOUNT_PAGES,
        errors=(*_CODES, *_STORES, UserBanned, PasswordsBusy, TooManyFailedLogins),
        docs=_DOCS,
    ),
    Endpoint("GET", "/account/not-me", not_me_page, ACCOUNT_PAGES, errors=_STORES, docs=_DOCS),
    Endpoint("POST", "/account/not-me", not_me, ACCOUNT_PAGES, errors=_STORES, docs=_DOCS),
]
