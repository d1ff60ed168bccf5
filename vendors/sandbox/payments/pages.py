"""Shared by the pages of the sandbox's payment platforms: their frame, fault buttons, and return address."""

from collections.abc import Mapping, Sequence
from html import escape
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from streams.wire.page_style import ICON_URL, LOGO, LOGO_STYLE, PARTS, VARIABLES

_STYLE = """
.card main > header div { line-height: 1.25; }
.card main > header small { display: block; }
.card .amount { margin-top: .25rem; color: var(--title); font-size: var(--size-xxl); line-height: 1.25;
  font-weight: 600; font-variant-numeric: tabular-nums; }
.card .amount + p { margin-top: .25rem; }
.facts { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .5rem; font-size: var(--size-xs);
  color: var(--quiet); }
.error code { display: block; }
.faults { margin-top: 1.25rem; padding-top: 1rem; border-top: 1px solid var(--line); }
.faults summary { min-height: 1.5rem; font-size: var(--size-s); }
.card .faults form { gap: 1rem; margin-top: 1rem; }
fieldset { display: grid; grid-template-columns: 1fr 1fr; gap: .5rem; min-width: 0; margin: 0; padding: 0;
  border: 0; }
legend { margin-bottom: .5rem; padding: 0; font-size: var(--size-xs); font-weight: 600; color: var(--quiet); }
fieldset button { font-size: var(--size-s); font-weight: 500; }
.state { padding: .125rem .5rem; border-radius: var(--radius); font-size: var(--size-xs); font-weight: 600;
  white-space: nowrap; color: var(--text); background: var(--page); border: 1px solid var(--line); }
.state.good { color: var(--good); background: var(--good-background); border-color: var(--good-background); }
.state.bad { color: var(--alert); background: var(--alert-background); border-color: var(--alert-background); }
.rows { padding: 0; list-style: none; border: 1px solid var(--line); border-radius: var(--radius);
  overflow: hidden; }
.card .rows { padding: 0; margin-top: 1.25rem; }
.card .rows li { margin: 0; }
.rows li + li { border-top: 1px solid var(--line); }
.rows a { display: grid; grid-template-columns: 1fr auto; align-items: center; gap: 0 .75rem;
  padding: .625rem .75rem; color: var(--text); text-decoration: none; }
.rows a:hover { background: var(--page); }
.rows a:focus-visible { outline-offset: -2px; }
.rows b { color: var(--title); font-weight: 600; font-variant-numeric: tabular-nums; }
.rows code { font-size: var(--size-xs); }
.rows small { grid-column: 1 / -1; font-size: var(--size-xs); color: var(--quiet); }
@media (max-width: 30rem) { fieldset { grid-template-columns: 1fr; } }
"""
Labels = Sequence[tuple[str, str]]
"""Faults, and the texts of their buttons."""
_OF_WEBHOOKS: Labels = (
    ("lost", "Lose webhooks"),
    ("duplicate", "Repeat webhooks"),
    ("delayed", "Delay webhooks"),
    ("reordered", "Reverse webhooks"),
)
_BACK = "back"
"""The query parameter with the URL to go to after a page, in place of the merchant's URL."""


def fault_buttons(action: str, faults: Labels) -> str:
    """Return a form that does something with a fault: the field `fault` names it."""
    return (
        f'<details class="faults"><summary>{escape(action.capitalize())}, and let something go wrong</summary>'
        f'<form method="post"><input type="hidden" name="action" value="{escape(action)}">'
        f"{_group('Payment', faults)}{_group('Webhooks', _OF_WEBHOOKS)}</form></details>"
    )


def _group(title: str, faults: Labels) -> str:
    buttons = "".join(
        f'<button class="quiet" name="fault" value="{name}">{escape(label)}</button>' for name, label in faults
    )
    return f"<fieldset><legend>{title}</legend>{buttons}</fieldset>"


def way_back(request: web.Request, query: Mapping[str, str], *, default: str = "") -> web.Response | None:
    """Return a redirect to the URL that the address of the page names, or to `default`. `None`: there is none."""
    url = _back(request) or default
    if not _is_web(url):
        return None
    address = f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(query)}"
    return web.Response(status=303, headers={"Location": address})


def kept_back(request: web.Request) -> str:
    """Return the query with which another page of the sandbox leads back to the same URL, or an empty text."""
    back = _back(request)
    return f"?{urlencode({_BACK: back})}" if back else ""


def back_link(request: web.Request) -> str:
    """Return a link to the URL that the address of the page names, if it does."""
    back = _back(request)
    return f'<a href="{escape(back)}">Back to the shop</a>' if _is_web(back) else ""


def _back(request: web.Request) -> str:
    return request.query.get(_BACK, "")


def _is_web(url: str) -> bool:
    return urlsplit(url).scheme in {"http", "https"}


def page(title: str, content: str, *, platform: str) -> web.Response:
    """Return a page with one card. `content` is HTML."""
    html = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="{ICON_URL}">'
        f"<title>{escape(title)} - {platform.lower()} sandbox</title>"
        f"<style>{VARIABLES}{PARTS}{LOGO_STYLE}{_STYLE}</style>"
        f'<body class="card"><main><header>{LOGO}'
        f"<div>{platform} sandbox<small>No money moves</small></div></header>{content}</main>"
    )
    return web.Response(text=html, content_type="text/html")
