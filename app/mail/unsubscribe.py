"""Unsubscribes the recipient of an email, by a page or by one click (RFC 8058)."""

from html import escape
from urllib.parse import quote

from aiohttp import web
from pydantic import Field

from app.http.html import Html, wants_html
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Query
from app.http.rows.replies import json_response
from app.mail.links import UNSUBSCRIBE_PATH, Subscription, read_token
from app.services import Services
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.email import EMAIL
from storage.mail import suppressions
from streams.wire.model import Model

_TOKEN_CHARACTERS = 2048


class UnsubscribeQuery(Model):
    token: str = Field(default="", max_length=_TOKEN_CHARACTERS)
    """The token of the email."""


async def unsubscribe_page(call: Call, query: Query[UnsubscribeQuery]) -> web.Response:
    """Open the page that asks whether to unsubscribe.

    Opening it changes nothing, because programs that scan emails also open their links.
    """
    named = read_token(call.services, query.token)
    form = (
        f"<p>{escape(named.address)} will get no more of these emails.</p>"
        f'<form method="post" action="{UNSUBSCRIBE_PATH}?token={quote(query.token)}">'
        "<button>Unsubscribe</button></form>"
    )
    return _page(call.services, named, "Unsubscribe", form)


async def unsubscribe(call: Call, query: Query[UnsubscribeQuery]) -> web.Response:
    """Send no more emails of a strategy to a recipient.

    Mail programs call this for `List-Unsubscribe-Post`. Emails about the account are still sent.
    """
    named = read_token(call.services, query.token)
    async with call.services.database.connection() as conn:
        await suppressions.unsubscribe(
            conn,
            named.app_id,
            address=named.address,
            strategy=named.strategy,
            now=call.services.clock.now(named.app_id),
        )
    if not wants_html(call.request):
        return json_response({})
    text = f"<p>{escape(named.address)} gets no more of these emails.</p>"
    return _page(call.services, named, "You are unsubscribed", text)


def error_page(_request: web.Request, status: int) -> web.Response:
    """Return the page of a link that cannot be used. It does not say why."""
    title, text = "This link does not work", "Open the link in the email again, or write to whoever sent it."
    return Html(title, f"<h1>{title}</h1>\n<p>{text}</p>").response(status=status)


def _page(services: Services, named: Subscription, title: str, body: str) -> web.Response:
    configs = services.configs
    app = configs.singleton(APPS, named.app_id).title or named.app_id
    color = configs.singleton(EMAIL, named.app_id).color
    return Html(title, f"<h1>{escape(title)}</h1>\n{body}", app=app, color=color).response()
