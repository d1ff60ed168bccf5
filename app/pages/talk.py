"""The talk page, on which people try an app in the browser. Available in development or by the app's config."""

from http import HTTPStatus

from aiohttp import web

from app.http.errors import PathNotFound
from app.http.html import Html
from app.http.rows.endpoint import DEFAULT_APP, Call
from app.http.rows.inputs import Path, Query
from app.page_bar import TALK, bar_links
from app.pages.assets import DOCS_LINK, is_part, static_page
from app.pages.rows import page_row
from app.playground import playground_shown
from streams.wire.model import Model

_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DEVELOPMENT_LINK = 'href="/dev/'
_CONSOLE_LINK = 'href="/console"'
_NOT_FOUND = """<h1>Page not found</h1>
<p>Either this server has no such app, or the app has no talk page.</p>
<p>Check the value of <code>?app=</code> in the address. The operator of the server can turn on
<code>playground</code> in the app's config of kind <code>apps</code>.</p>
"""
_FOLDERS = frozenset({"shared", "talk", "vendor"})


class TalkQuery(Model):
    app: str = DEFAULT_APP
    """The app of this server that the page uses."""


class PartPath(Model):
    part: str
    """A file of the page."""


async def talk_page(call: Call, query: Query[TalkQuery]) -> web.Response:
    """Open the talk page.

    The page is available in development, or if `playground` is on in the app's config of kind `apps`.
    """
    if not playground_shown(call.services, query.app):
        if "text/html" not in call.request.headers.get("Accept", ""):
            raise PathNotFound(call.request.path)
        return _not_found_page(call)
    settings = call.services.settings
    links = {
        DOCS_LINK: settings.shows_docs,
        _DEVELOPMENT_LINK: settings.development,
        _CONSOLE_LINK: settings.development
        and settings.shows_console,  # Users of an app need not know its address.
    }
    hidden = tuple(link for link, shown in links.items() if not shown)
    page = static_page("talk/index.html", without=hidden, bar=bar_links(call.services, TALK))
    return await page.response(call.request, policy=_POLICY)


async def talk_part(call: Call, path: Path[PartPath]) -> web.Response:
    """Read a file of the talk page."""
    services, part = call.services, path.part
    shown = any(playground_shown(services, app_id) for app_id in services.configs.apps())
    if not shown or not is_part(part, _FOLDERS):
        raise PathNotFound(call.request.path)
    return await static_page(part).response(call.request, policy=_POLICY)


async def icon(call: Call) -> web.Response:
    """Read the icon of all pages.

    Browsers also ask for it when they show JSON.
    """
    return await static_page("logo.svg").response(call.request, policy=_POLICY)


def _not_found_page(call: Call) -> web.Response:
    """Return the 404 page for browsers. It does not reveal whether the app exists."""
    talk = '<a href="/">Talk</a>' if playground_shown(call.services, DEFAULT_APP) else ""
    accounts = '<a href="/dev/accounts">Accounts</a>' if call.services.settings.development else ""
    body = f"{_NOT_FOUND}<nav>{talk}{accounts}</nav>"
    return Html("Page not found", body).response(status=HTTPStatus.NOT_FOUND)


TALK_ROUTES = [
    page_row("/", talk_page, "text/html", errors=(PathNotFound,)),
    page_row("/favicon.ico", icon, "image/svg+xml"),
    page_row("/static/{part:.+}", talk_part, "*/*", errors=(PathNotFound,)),
]
