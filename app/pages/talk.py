"""The page to talk to this server from a browser: shown in development, or where an app's config says so."""

import re
from contextlib import suppress
from http import HTTPStatus

from aiohttp import web

from app.http.caller import Access
from app.http.docs import Docs, OtherResponse
from app.http.endpoint import DEFAULT_APP, Call, Endpoint, Handler
from app.pages.assets import STATIC, static_page
from app.services import Services
from storage.kinds.apps import APPS
from streams.wire.errors import ConfigInvalid, ServiceError
from streams.wire.model import Model

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DOCS_LINK = 'href="/docs"'
_PART = re.compile(r"(?:talk|vendor)/[a-z0-9_-]+\.(?:css|js)", re.ASCII)


class TalkQuery(Model):
    app: str = DEFAULT_APP
    """Which app of this server the page talks to."""


def playground_shown(services: Services, app_id: str) -> bool:
    """Whether people may try the app out on the page: as its config says, else in development alone."""
    configs = services.configs
    if not configs.exists(APPS, app_id):
        return False
    chosen = None
    with suppress(ConfigInvalid):
        chosen = configs.singleton(APPS, app_id).playground
    return services.settings.development if chosen is None else chosen


async def talk_page(call: Call, query: TalkQuery) -> web.Response:
    """A page to talk to this server.

    It is shown in development, or where the config of the app (kind `apps`) has `playground` on.
    """
    if not playground_shown(call.services, query.app):
        if "text/html" not in call.request.headers.get("Accept", ""):
            raise _nothing()
        return await _nothing_to_read(call.request)
    page = static_page("talk/index.html", without="" if call.services.settings.shows_docs else _DOCS_LINK)
    return await page.answer(call.request, policy=_POLICY)


async def talk_part(call: Call) -> web.Response:
    """What that page is made of."""
    services, part = call.services, call.path["part"]
    shown = any(playground_shown(services, app_id) for app_id in services.configs.apps())
    if not shown or not _PART.fullmatch(part) or not (STATIC / part).is_file():
        raise _nothing()
    return await static_page(part).answer(call.request, policy=_POLICY)


def _nothing() -> ServiceError:
    """As if there were no such row."""
    return ServiceError("there is no such path", error_type="not_found")


async def _nothing_to_read(request: web.Request) -> web.Response:
    """The same in words for a browser, whether there is such an app or not."""
    page = static_page("talk/nothing.html")
    response = await page.answer(request, policy=_POLICY)
    if response.status == HTTPStatus.OK:  # else the browser has it already
        response.set_status(HTTPStatus.NOT_FOUND)
    return response


def _row(path: str, handler: Handler, media_type: str, query: type[Model] | None = None) -> Endpoint:
    answers = {200: OtherResponse("As asked for.", media_type), 304: OtherResponse("The client has it already.")}
    notes = Docs(answers=answers, errors=(_nothing(),))
    return Endpoint(
        "GET", path, handler, access=Access.PUBLIC, query=query, tag="reference", access_log=False, docs=notes
    )


TALK_ROUTES = [
    _row("/", talk_page, "text/html", TalkQuery),
    _row("/static/{part:.+}", talk_part, "*/*"),
]
