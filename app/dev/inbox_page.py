"""The pages that show what the sandbox of a development server keeps: emails and text messages."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from typing import NamedTuple

from app.http.html import Html
from app.http.rows.endpoint import Call
from app.page_bar import bar

_PARTS = ("/dev/static/inbox/style.css", "/dev/static/inbox/live.js")
_LINK = re.compile(r"https?://[^\s<>\"']+")


class Kept(NamedTuple):
    """An item of the list."""

    item_id: str
    html: str


class Search(NamedTuple):
    """The field by which the list is filtered."""

    label: str
    type: str
    value: str


def inbox_page(
    call: Call,
    title: str,
    kept: Iterable[Kept],
    *,
    search: Search,
    none: str,
    detail: str = "",
    images_from: str = "",
) -> Html:
    """Return a page with a list, the newest first, which its script keeps up to date.

    `none` is the HTML of an empty list, and `detail` the HTML of the item that is open. The frames in it may load
    the image `images_from`.
    """
    items = "\n".join(f'<li data-id="{escape(item_id)}">{html}</li>' for item_id, html in kept)
    listed = f'<ol id="kept">\n{items}\n</ol>' if items else f'<p class="none">{none}</p>'
    if items and detail:
        listed = f'<div class="columns">{listed}\n{detail}</div>'
    form = (
        f'<form><input name="to" type="{search.type}" aria-label="{search.label}" placeholder="{search.label}" '
        f'value="{escape(search.value)}"><button class="quiet">Show</button></form>'
    )
    return Html(
        f"{title} · Parley",
        f'<div class="top"><h1>{escape(title)}</h1>{form}</div>\n{listed}\n<p role="status" class="unseen"></p>',
        bar=bar(call.services, call.endpoint.path),
        layout="list",
        parts=_PARTS,
        frames=bool(detail),
        images_from=images_from,
    )


def shown_time(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f'<time datetime="{at:%Y-%m-%dT%H:%M:%SZ}">{at:%Y-%m-%d %H:%M:%S} UTC</time>'


def linked(text: str) -> str:
    """Return escaped text whose URLs are links."""
    parts, end = [], 0
    for found in _LINK.finditer(text):
        url = escape(found[0])
        parts += [escape(text[end : found.start()]), f'<a href="{url}">{url}</a>']
        end = found.end()
    return "".join([*parts, escape(text[end:])])
