"""The reference page and the document behind it. They ask nothing of any other host."""

import asyncio
from collections.abc import Sequence
from functools import lru_cache

from aiohttp import web

from app.http.caller import Access
from app.http.docs import Docs, OtherResponse
from app.http.endpoint import Call, Endpoint, Handler
from app.http.openapi.document import openapi
from app.pages.assets import Page, static_page
from streams.wire.codec import dumps

# The viewer makes its style elements itself, so these cannot be forbidden.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


async def docs_page(call: Call) -> web.Response:
    """This page."""
    return await static_page("reference.html").answer(call.request, policy=_POLICY)


async def docs_viewer(call: Call) -> web.Response:
    """What shows the document on this page."""
    return await static_page("scalar.js").answer(call.request, policy=_POLICY)


async def docs_start(call: Call) -> web.Response:
    """How the viewer is started."""
    return await static_page("reference.js").answer(call.request, policy=_POLICY)


def docs_routes(interface: Sequence[Endpoint]) -> list[Endpoint]:
    """The rows of the reference page of `interface`, which describe themselves too."""

    @lru_cache(maxsize=1)
    def document(public_url: str) -> Page:
        return Page.of("application/json", dumps(openapi([*interface, *rows], public_url=public_url)))

    async def openapi_json(call: Call) -> web.Response:
        """The OpenAPI document of this server."""
        page = await asyncio.to_thread(document, call.services.settings.public_url)
        return await page.answer(call.request, policy=_POLICY)

    rows = [
        _row("/openapi.json", openapi_json, "application/json"),
        _row("/docs", docs_page, "text/html"),
        _row("/docs/scalar.js", docs_viewer, "text/javascript"),
        _row("/docs/reference.js", docs_start, "text/javascript"),
    ]
    return rows


def _row(path: str, handler: Handler, media_type: str) -> Endpoint:
    answers = {200: OtherResponse("As asked for.", media_type), 304: OtherResponse("The client has it already.")}
    notes = Docs(answers=answers)
    return Endpoint("GET", path, handler, access=Access.PUBLIC, tag="reference", access_log=False, docs=notes)
