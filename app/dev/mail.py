"""The emails that the local inbox of a development server keeps instead of delivering them."""

import re
from datetime import UTC, datetime
from html import escape

from aiohttp import web

from app.dev.area import DEVELOPMENT, require_app
from app.dev.sandbox import ask_sandbox
from app.http.html import Html, wants_html
from app.http.links import LinkAddress
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import DEFAULT_APP, Call, Endpoint
from app.http.rows.inputs import Query
from app.http.rows.replies import json_response
from app.page_bar import bar
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
_LINK = re.compile(r"https?://[^\s<>\"']+")


class MailQuery(Model):
    to: LinkAddress | None = None
    """List only the emails to this address."""


class SentQuery(Model):
    app: str = DEFAULT_APP
    uid: str
    """The user to whom the emails were sent."""


class SentMails(Model):
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

    Browsers get a page; with `Accept: application/json`, and without `text/html` in it, the response is a list of
    `{id, to, subject, text, html, headers, at}`. `at` is in Unix milliseconds. Only development servers have this
    endpoint.
    """
    mails = await ask_sandbox(call.services, _INBOX, lambda inbox: inbox.mails(query.to or None))
    if not wants_html(call.request):
        return json_response([mail.model_dump() for mail in mails])
    title = f"Emails to {query.to}" if query.to else "Emails"
    none = f"<p>There are no emails{' to this address' if query.to else ''} yet.</p>"
    shown = "\n".join(map(_article, mails)) or none
    search = (
        '<form><label>Recipient<input name="to" type="email" '
        f'value="{escape(query.to or "")}"></label><button>Show</button></form>'
    )
    page = Html(
        title,
        f"<h1>{escape(title)}</h1>\n{search}\n{shown}",
        bar=bar(call.services, "/dev/mail"),
        layout="list",
        frames=True,
        images_from=f"{call.services.settings.public_url}{_PIXEL_PATH}",
    )
    return page.response()


def _article(mail: KeptMail) -> str:
    at = datetime.fromtimestamp(mail.at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    html = ""
    if mail.html:
        html = (
            f'<details><summary>HTML</summary><iframe sandbox title="HTML of the email" '
            f'srcdoc="{escape(mail.html)}"></iframe></details>'
        )
    sender = escape(str(mail.headers.get("From", "")))
    return (
        f"<article><h2>{escape(mail.subject)}</h2><p>{at}, to {escape(mail.to)}, from {sender}</p>"
        f"<pre>{_linked(mail.text)}</pre>{html}</article>"
    )


def _linked(text: str) -> str:
    """Return escaped text whose URLs are links."""
    parts, end = [], 0
    for found in _LINK.finditer(text):
        url = escape(found[0])
        parts += [escape(text[end : found.start()]), f'<a href="{url}">{url}</a>']
        end = found.end()
    return "".join([*parts, escape(text[end:])])


_DOCS = Docs(answers={200: OtherResponse("A page, or JSON.", "application/json")})

MAIL_ROUTES = [
    Endpoint("GET", "/dev/mail", read_mail, DEVELOPMENT, errors=(BackendUnavailable,), docs=_DOCS),
    Endpoint("GET", "/dev/mail/sent", read_sent, DEVELOPMENT, errors=(AppNotFound,)),
]
