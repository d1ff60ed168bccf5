"""The pages of this server to which links of emails lead. They need no script."""

from html import escape

from aiohttp import web

from app.accounts.email_texts import language_for, language_of, page_texts
from app.http.endpoint import Call
from app.http.html import Html
from storage.kinds.apps import APPS
from storage.kinds.email import EMAIL


def texts(call: Call) -> dict[str, str]:
    return page_texts(language_of(call))


def message_page(call: Call, app_id: str | None, key: str, *, email: str = "", status: int = 200) -> web.Response:
    """Return the page whose title is the text `key`, and whose body is the text `<key>_more`.

    `email` replaces `{email}` in both.
    """
    labels = texts(call)
    title, more = labels[key].format(email=email), labels[f"{key}_more"].format(email=email)
    return page(call, app_id, title, f"<p>{escape(more)}</p>", status=status)


def broken_page(call: Call) -> web.Response:
    """Return the page of a link that does not work, whatever the reason is."""
    apps = call.services.configs.apps()  # Such a link does not say whose it is.
    return message_page(call, apps[0] if len(apps) == 1 else None, "broken", status=400)


def page(call: Call, app_id: str | None, title: str, body: str, *, status: int = 200) -> web.Response:
    """Return a page with the title and the colour of the app. `body` is HTML."""
    configs, header, color = call.services.configs, "", None
    if app_id is not None:
        name = configs.singleton(APPS, app_id).title or app_id
        header = f'<header><span aria-hidden="true">{escape(name[0].upper())}</span>{escape(name)}</header>\n'
        color = configs.singleton(EMAIL, app_id).color
    html = f"{header}<h1>{escape(title)}</h1>\n{body}"
    return Html(title, html, language=language_for(language_of(call)), color=color).response(status=status)
