"""The pages of this server that emails link to. They need no script."""

from html import escape

from aiohttp import web

from app.accounts.mails.texts import language_for, language_of, page_texts
from app.http.html import Html
from app.services import SERVICES
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.email import EMAIL


def labels_for(request: web.Request) -> dict[str, str]:
    return page_texts(language_of(request))


def message_page(
    request: web.Request, app_id: str | None, key: str, *, email: str = "", status: int = 200
) -> web.Response:
    """Return the page whose title is the text `key`, and whose body is the text `<key>_more`.

    `email` replaces `{email}` in both.
    """
    labels = labels_for(request)
    title, more = labels[key].format(email=email), labels[f"{key}_more"].format(email=email)
    return hosted_page(request, app_id, title, f"<p>{escape(more)}</p>", status=status)


def error_page(request: web.Request, status: int) -> web.Response:
    """Return the page of a link that is invalid, or that cannot be used at the moment. It does not say why."""
    apps = request.app[SERVICES].configs.apps()  # Such a link does not identify its app.
    key = "later" if status == 429 or status >= 500 else "broken"
    return message_page(request, apps[0] if len(apps) == 1 else None, key, status=status)


def hosted_page(
    request: web.Request, app_id: str | None, title: str, body: str, *, status: int = 200, forms_lead_to: str = ""
) -> web.Response:
    """Return a page with the title and the colour of the app. `body` is HTML.

    `forms_lead_to` is the URL to which the response to its form redirects, if it does.
    """
    configs, app, color = request.app[SERVICES].configs, "", None
    if app_id is not None:
        app = configs.singleton(APPS, app_id).title or app_id
        color = configs.singleton(EMAIL, app_id).color
    html = f"<h1>{escape(title)}</h1>\n{body}"
    language = language_for(language_of(request))
    page = Html(title, html, app=app, language=language, color=color, forms_lead_to=forms_lead_to)
    return page.response(status=status)
