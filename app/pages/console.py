"""The console for operators: its page and the files that it consists of. It calls the admin API."""

from aiohttp import web

from app.http.errors import PathNotFound
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Path
from app.page_bar import CONSOLE, bar_links
from app.pages.assets import is_part, static_page
from app.pages.rows import page_row
from streams.wire.model import Model

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "media-src blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FOLDERS = frozenset({"console", "shared", "vendor"})


class ConsolePartPath(Model):
    part: str
    """A file of the console."""


async def console_page(call: Call) -> web.Response:
    """Open the console for operators.

    The page is available in development, or with `PARLEY_CONSOLE=on`.
    """
    bar = bar_links(call.services, CONSOLE)
    return await static_page("console/index.html", bar=bar).response(call.request, policy=_POLICY)


async def console_part(call: Call, path: Path[ConsolePartPath]) -> web.Response:
    """Read a file of the console."""
    if not is_part(path.part, _FOLDERS):
        raise PathNotFound(call.request.path)
    return await static_page(path.part).response(call.request, policy=_POLICY)


CONSOLE_PAGE_ROUTES = [
    page_row("/console", console_page, "text/html"),
    page_row("/console/static/{part:.+}", console_part, "*/*", errors=(PathNotFound,)),
]
