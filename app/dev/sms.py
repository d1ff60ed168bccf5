"""The text messages that the sandbox of a development server gets."""

from html import escape

from aiohttp import web

from app.dev.area import DEVELOPMENT
from app.dev.inbox_page import Kept, Search, inbox_page, linked, shown_time
from app.dev.sandbox import ask_sandbox
from app.http.html import Html, prefers_html
from app.http.rows.docs import Docs, OtherResponse
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Query
from app.http.rows.replies import json_response
from streams.wire.errors import BackendUnavailable
from streams.wire.model import Model
from vendors.catalog import Capability
from vendors.sms.inbox import KeptMessage, SmsInbox

_INBOX = Capability[None, SmsInbox]("sms_inbox").by(SmsInbox)
_TRY = 'Log in <a href="/dev/accounts#phone">with a phone number</a>, and its code appears here.'
_VARY = {"Vary": "Accept"}


class SmsQuery(Model):
    to: str | None = None
    """List only the messages to this phone number."""


async def read_sms(call: Call, query: Query[SmsQuery]) -> web.Response:
    """List the text messages that were sent, the newest first.

    Browsers get a page. Other clients get `{messages: [{id, app, to, text, code, at}]}`; `at` is in Unix
    milliseconds. Only development servers have this endpoint.
    """
    to = query.to or None
    if to is not None and to.startswith(" "):  # A + that is typed into an address bar arrives as a space.
        to = f"+{to[1:]}"
    messages = await ask_sandbox(call.services, _INBOX, lambda inbox: inbox.messages(to))
    response = (
        _page(call, messages, to=to or "").response()
        if prefers_html(call.request)
        else json_response({"messages": [message.model_dump() for message in messages]})
    )
    response.headers.update(_VARY)
    return response


def _page(call: Call, messages: list[KeptMessage], *, to: str) -> Html:
    return inbox_page(
        call,
        "SMS",
        [Kept(message.id, _item(message)) for message in messages],
        search=Search("Phone number", "tel", to),
        none=f"There are no text messages{' to this number' if to else ''} yet. {_TRY}",
    )


def _item(message: KeptMessage) -> str:
    code = ""
    if message.code:
        code = (
            f'<p class="code"><span>{escape(message.code)}</span>'
            f'<button type="button" class="quiet" data-copy="{escape(message.code)}" hidden>Copy</button></p>'
        )
    return (
        f"<article><h2>{escape(message.to)}</h2><p>{shown_time(message.at)}, from {escape(message.app)}</p>"
        f'{code}<p class="said">{linked(message.text)}</p></article>'
    )


_DOCS = Docs(answers={200: OtherResponse("A page, or JSON.", "application/json")})

SMS_ROUTES = [Endpoint("GET", "/dev/sms", read_sms, DEVELOPMENT, errors=(BackendUnavailable,), docs=_DOCS)]
