"""The talk page, on which people try an app in the browser. Available in development or by the app's config."""

from aiohttp import web

from app.http.errors import PathNotFound
from app.http.rows.endpoint import DEFAULT_APP, Call
from app.http.rows.inputs import Path, Query
from app.page_bar import TALK, bar_links
from app.pages.assets import DOCS_LINK, is_part, static_page
from app.pages.rows import page_row
from app.playground import playground_shown
from streams.wire.model import Model

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FOLDERS = frozenset({"client", "inside", "pronounce", "shared", "talk", "vendor"})


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
        raise PathNotFound(call.request.path)
    hidden = () if call.services.settings.shows_docs else (DOCS_LINK,)
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


TALK_ROUTES = [
    page_row("/", talk_page, "text/html", errors=(PathNotFound,)),
    page_row("/favicon.ico", icon, "image/svg+xml"),
    page_row("/static/{part:.+}", talk_part, "*/*", errors=(PathNotFound,)),
]
