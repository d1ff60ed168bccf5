"""The page that a browser gets when it opens an address at which this server has no page.

It depends only on the kind of the address, so it reveals no more than the error envelope: nobody learns whether a
file does not exist, or only its link has expired.
"""

from html import escape
from http import HTTPStatus
from typing import NamedTuple

from aiohttp import web

from app.http.html import Html
from app.http.rows.endpoint import DEFAULT_APP, Endpoint
from app.page_bar import TALK, bar
from app.playground import playground_shown
from app.services import SERVICES, Services


class _Text(NamedTuple):
    title: str
    paragraphs: tuple[str, ...]


_MISSING = _Text(
    "Page not found",
    ("There is nothing at this address. It may be mistyped, or what was here no longer exists.",),
)
_TALK = _Text(
    "Page not found",
    (
        "Either this server has no such app, or the app has no page here.",
        "Check the value of ?app= in the address.",
    ),
)
_TALK_IN_DEVELOPMENT = _Text(
    _TALK.title,
    (*_TALK.paragraphs, "The setting playground in the app's config of kind apps turns the page on."),
)
"""The users of an app cannot change its configs."""
_FILE = _Text(
    "This file is not available",
    (
        "Links to files work for a limited time. This one has expired, or its file no longer exists.",
        "Go back to where you found the link, to get a new one.",
    ),
)
_CALL = _Text(
    "This address is not a page",
    ("Apps send requests to it. A browser cannot open it.",),
)
_FILES = "files"
"""The group of the endpoints behind signed links."""


def error_page(request: web.Request, status: int, row: Endpoint | None) -> web.Response:
    """Return the page of an error with this status, at an address that belongs to `row` or to no row."""
    services = request.app[SERVICES]
    text = _text_of(status, row, development=services.settings.development)
    paragraphs = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in text.paragraphs)
    links = "".join(f'<a href="{path}">{name}</a>' for path, name in _pages(services).items())
    nav = f"\n<nav>{links}</nav>" if links else ""
    body = f"<h1>{escape(text.title)}</h1>\n{paragraphs}{nav}"
    return Html(text.title, body, bar=bar(services, "")).response(status=status)


def _text_of(status: int, row: Endpoint | None, *, development: bool) -> _Text:
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return _CALL
    if row is not None and row.path == TALK:
        return _TALK_IN_DEVELOPMENT if development else _TALK
    return _FILE if row is not None and row.area.group == _FILES else _MISSING


def _pages(services: Services) -> dict[str, str]:
    """Return the pages of this server on which whoever is lost can go on."""
    settings = services.settings
    shown = {
        "/": ("Talk", playground_shown(services, DEFAULT_APP)),
        "/docs": ("API reference", settings.shows_docs),
        "/dev/mail": ("Emails", settings.development),
    }
    return {path: name for path, (name, is_shown) in shown.items() if is_shown}
