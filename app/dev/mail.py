"""The emails that the local inbox of a development server keeps instead of delivering them."""

from collections.abc import Sequence
from functools import partial
from html import escape
from urllib.parse import urlencode

from aiohttp import web

from app.dev.area import DEVELOPMENT, require_app
from app.dev.inbox_page import Kept, Search, inbox_page, linked, shown_time
from app.dev.sandbox import ask_sandbox
from app.http.html import Html, prefers_html
from app.http.links import LinkAddress
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import DEFAULT_APP, Call, Endpoint
from app.http.rows.inputs import Query
from app.http.rows.replies import json_response
from storage.mail import mails
from storage.mail.mails import SentMail
from streams.wire.errors import AppNotFound, BackendUnavailable
from streams.wire.model import Model
from vendors.catalog import Capability
from vendors.mail.inbox import InboxClient, KeptMail

_INBOX = Capability[None, InboxClient]("inbox").by(InboxClient)
_PIXEL_PATH = "/bp/res/i.gif"
"""The only image that emails may load."""
_NEWEST = 20
_NEW_TABS = '<base target="_blank">'
_TITLES = {"html": "HTML", "text": "Text", "source": "Source"}
_TRY = 'Log in <a href="/dev/accounts#email_code">with an email address</a>, and its code appears here.'
_VARY = {"Vary": "Accept"}


class MailQuery(Model):
    to: LinkAddress | None = None
    """List only the emails to this address."""
    id: str | None = None
    """The email that the page for browsers shows. Default: the newest."""


class SentQuery(Model):
    app: str = DEFAULT_APP
    uid: str
    """The user to whom the emails were sent."""


class SentMails(Model):
    """The emails, with the opens of each."""

    mails: list[SentMail]


async def read_sent(call: Call, query: Query[SentQuery]) -> SentMails:
    """List the newest emails to a user, with the opens of each.

    Only development servers have this endpoint.
    """
    app_id = require_app(call.services, query.app)
    async with call.services.database.connection() as conn:
        return SentMails(mails=await mails.newest(conn, app_id, query.uid, size=_NEWEST))


async def read_mail(call: Call, query: Query[MailQuery]) -> web.Response:
    """List the emails of the local inbox, the newest first.

    Browsers get a page. Other clients get a list of `{id, to, subject, text, html, headers, at}`; `at` is in Unix
    milliseconds. Only development servers have this endpoint.
    """
    mails = await ask_sandbox(call.services, _INBOX, lambda inbox: inbox.mails(query.to or None))
    if not prefers_html(call.request):
        return json_response([mail.model_dump() for mail in mails], headers=_VARY)
    opened = next((mail for mail in mails if mail.id == query.id), mails[0] if mails else None)
    source = "" if opened is None else await ask_sandbox(call.services, _INBOX, partial(_source, opened.id))
    response = _page(call, query, mails, opened=opened, source=source).response()
    response.headers.update(_VARY)
    return response


async def _source(mail_id: str, inbox: InboxClient) -> str:
    return await inbox.source(mail_id)


def _page(call: Call, query: MailQuery, mails: list[KeptMail], *, opened: KeptMail | None, source: str) -> Html:
    return inbox_page(
        call,
        "Emails",
        [Kept(mail.id, _item(mail, to=query.to, is_open=mail is opened)) for mail in mails],
        search=Search("Recipient", "email", query.to or ""),
        none=f"There are no emails{' to this address' if query.to else ''} yet. {_TRY}",
        detail="" if opened is None else _article(opened, source, is_chosen=query.id is not None, to=query.to),
        images_from=f"{call.services.settings.public_url}{_PIXEL_PATH}",
    )


def _item(mail: KeptMail, *, to: str | None, is_open: bool) -> str:
    current = ' aria-current="true"' if is_open else ""
    return (
        f'<a href="{escape(_link(to, mail_id=mail.id))}"{current}><strong>{escape(mail.subject)}</strong>'
        f"<span>{escape(mail.to)}</span>{shown_time(mail.at)}</a>"
    )


def _link(to: str | None, *, mail_id: str = "") -> str:
    return f"?{urlencode({name: value for name, value in (('to', to), ('id', mail_id)) if value})}"


def _article(mail: KeptMail, source: str, *, is_chosen: bool, to: str | None) -> str:
    """Return an open email. On a phone, one that was chosen is shown in place of the list."""
    facts = {"From": str(mail.headers.get("From", "")), "To": mail.to}
    listed = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    parts = {"html": _frame(mail.html)} if mail.html else {}
    if mail.text:
        parts["text"] = f"<pre>{linked(mail.text)}</pre>"
    parts["source"] = f'<pre class="raw" tabindex="0">{escape(source)}</pre>'
    shown = "".join(f'<div class="part" data-part="{name}">{html}</div>' for name, html in parts.items())
    back = f'<a class="back" href="{escape(_link(to))}">All emails</a>'
    return (
        f'<article class="mail{" chosen" if is_chosen else ""}">{back}<h2>{escape(mail.subject)}</h2>'
        f"<dl>{listed}<dt>Date</dt><dd>{shown_time(mail.at)}</dd></dl>{_tabs(list(parts))}{shown}</article>"
    )


def _tabs(parts: Sequence[str]) -> str:
    """Return the choice of the part that is shown. It works by rules of the style sheet, without the script."""
    choices = "".join(
        f'<label><input type="radio" name="part" value="{part}"{" checked" if part == parts[0] else ""}>'
        f"<span>{_TITLES[part]}</span></label>"
        for part in parts
    )
    return f'<fieldset class="tabs"><legend class="unseen">Part of the email</legend>{choices}</fieldset>'


def _frame(html: str) -> str:
    """Return the HTML part in a frame. Its links open in new tabs, and nothing in it can run."""
    return (
        '<iframe title="HTML of the email" sandbox="allow-popups allow-popups-to-escape-sandbox" '
        f'srcdoc="{escape(_NEW_TABS + html)}"></iframe>'
    )


_DOCS = Docs(answers={200: OtherResponse("A page, or JSON.", "application/json")})

MAIL_ROUTES = [
    Endpoint("GET", "/dev/mail", read_mail, DEVELOPMENT, errors=(BackendUnavailable,), docs=_DOCS),
    Endpoint("GET", "/dev/mail/sent", read_sent, DEVELOPMENT, errors=(AppNotFound,)),
]
