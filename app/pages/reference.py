"""The reference page and its OpenAPI document. The page loads nothing from other hosts."""

import asyncio
from collections.abc import Sequence
from functools import lru_cache

from aiohttp import web

from app.http.errors import PathNotFound
from app.http.openapi.document import openapi
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Path
from app.page_bar import GUIDES_FOLDER, REFERENCE, bar_links
from app.pages.assets import Page, is_part, static_page
from app.pages.rows import page_row
from streams.wire.codec import dumps
from streams.wire.model import Model

# The viewer creates style elements, so inline styles must be allowed.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FOLDERS = frozenset({"guides", "reference", "vendor"})
_SESSION = "reference/session.js"
"""The line of the page with this text starts what only development servers have."""


class DocsPartPath(Model):
    part: str
    """A file of the page."""


async def docs_page(call: Call) -> web.Response:
    """Read this page."""
    hidden = () if call.services.settings.development else (_SESSION,)
    page = static_page("reference/index.html", without=hidden, bar=bar_links(call.services, REFERENCE))
    return await page.response(call.request, policy=_POLICY)


async def docs_viewer(call: Call) -> web.Response:
    """Read the viewer script of this page."""
    return await static_page("scalar.js").response(call.request, policy=_POLICY)


async def docs_part(call: Call, path: Path[DocsPartPath]) -> web.Response:
    """Read a file of this page."""
    if not is_part(path.part, _FOLDERS):
        raise PathNotFound(call.request.path)
    return await static_page(path.part).response(call.request, policy=_POLICY)


def docs_routes(interface: Sequence[Endpoint]) -> list[Endpoint]:
    """Return the routes of the reference page. The document describes `interface` and these routes."""

    @lru_cache(maxsize=1)
    def document(public_url: str, *, guides: bool) -> Page:
        described = openapi([*interface, *rows], public_url=public_url, guides=guides)
        return Page.of("application/json", dumps(described))

    async def openapi_json(call: Call) -> web.Response:
        """Read the OpenAPI document of this server."""
        settings = call.services.settings
        guides = settings.development and GUIDES_FOLDER.is_dir()
        page = await asyncio.to_thread(document, settings.public_url, guides=guides)
        return await page.response(call.request, policy=_POLICY)

    rows = [
        page_row("/openapi.json", openapi_json, "application/json"),
        page_row("/docs", docs_page, "text/html"),
        page_row("/docs/scalar.js", docs_viewer, "text/javascript"),
        page_row("/docs/static/{part:.+}", docs_part, "*/*", errors=(PathNotFound,)),
    ]
    return rows
