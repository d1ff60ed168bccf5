"""Small HTML pages that are rendered per request. Without `parts`, they contain no scripts and load nothing."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from http import HTTPStatus
from typing import Literal
from urllib.parse import quote

from aiohttp import web
from yarl import URL

from app.http.accept import weights
from streams.wire.page_style import BAR, DARK, ICON_URL, LIGHT, LOGO, LOGO_STYLE, PARTS, VARIABLES

_STYLE = """
h1 { text-wrap: balance; }
.list main { max-width: 60rem; margin: 0 auto; padding: .75rem 1rem; }
.list form { display: flex; align-items: end; gap: .5rem; max-width: 28rem; margin: .75rem 0; }
.list form label { flex: 1; min-width: 0; }
.list form :is(button, input) { height: 2.75rem; }
.card:has(.page-bar) { padding: 0; grid-template-rows: auto 1fr; align-content: stretch; justify-items: stretch; }
.card .page-bar { margin: 0; gap: var(--space-4); font-size: var(--size-m); font-weight: 400; }
.card .page-bar + main { place-self: center; width: calc(100% - 2rem); margin: 1rem; }
.check { display: flex; align-items: center; gap: .75rem; min-height: 2.75rem; font-weight: 400; }
article { border: 1px solid var(--line); border-radius: var(--card-radius); background: var(--card);
  padding: 1rem; margin: .75rem 0; }
article p { margin: 0; font-size: var(--size-s); color: var(--quiet); }
pre { white-space: pre-wrap; font: var(--size-s)/1.5 var(--mono); margin: .75rem 0; }
iframe { width: 100%; height: 24rem; margin-top: .5rem; border: 1px solid var(--line);
  border-radius: var(--radius); background: var(--paper); }
"""
_SCRIPTS = "script-src 'self'; connect-src 'self'; "
_HTML = "text/html"
_OF_CALLS = ("x-service-", "authorization")
"""The beginnings of headers by which a call of the interface names its app, session or token."""
_MIN_CONTRAST = 4.5
"""The contrast that text must have with its background, by WCAG 2.2."""


def text_on(color: str) -> str:
    """Return the colour, white or black, of text on a background `#rrggbb`.

    White is returned if its contrast suffices. Otherwise the contrast of black is at least 4.67, because both
    contrasts multiply to 21.
    """
    return "#fff" if _contrast(color, "#ffffff") >= _MIN_CONTRAST else "#000"


def legible(color: str, colors: Mapping[str, str]) -> str:
    """Return a colour like `color` in which text can be read on a card, in the scheme with these colours."""
    mixes = (mixed(colors["title"], color, share=tenths / 10) for tenths in range(11))
    return next((each for each in mixes if _contrast(each, colors["card"]) >= _MIN_CONTRAST), colors["title"])


def mixed(one: str, other: str, *, share: float) -> str:
    """Return the mix of two colours `#rrggbb`, of which `share` is the first."""
    channels = (
        round(int(one[at : at + 2], 16) * share + int(other[at : at + 2], 16) * (1 - share)) for at in (1, 3, 5)
    )
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    """Return the relative luminance of a colour, from 0 to 1, by WCAG 2.2."""
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@dataclass(frozen=True, slots=True)
class Html:
    """A page. `body` is HTML, in which all values from elsewhere are already escaped."""

    title: str
    body: str
    language: str = "en"
    color: str | None = None
    """The colour of its buttons and links, as `#rrggbb`."""
    bar: str = ""
    """The bar above it, as HTML."""
    app: str = ""
    """The name of the app whose page it is. It is shown above the body, and its initial is the icon."""
    layout: Literal["card", "list"] = "card"
    """Whether it shows one card, or a list of articles below a header."""
    parts: Sequence[str] = ()
    """Paths of style sheets and modules of this server that it loads."""
    frames: bool = False
    """Whether it shows documents in frames."""
    images_from: str = ""
    """The URL of an image that frames may load."""
    forms_lead_to: str = ""
    """The URL of a page to which the response to a form redirects."""

    def response(self, *, status: int = HTTPStatus.OK) -> web.Response:
        own = _own_colors(self.color) if self.color else ""
        style = f"{VARIABLES}{own}{PARTS}{_STYLE}{BAR if self.bar else LOGO_STYLE}"
        allowed = f"'sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"
        if self.frames:  # The documents in them are shown with their own styles.
            allowed = "'unsafe-inline'"
        if self.parts:
            allowed += " 'self'"
        images = f"data: {self.images_from}".strip()
        forms = f"'self' {_source(self.forms_lead_to)}".strip()
        scripts = _SCRIPTS if self.parts else ""
        policy = (
            f"default-src 'none'; {scripts}style-src {allowed}; img-src {images}; form-action {forms}; "
            "base-uri 'none'; frame-ancestors 'none'"
        )
        text = _PAGE.format(
            title=escape(self.title),
            icon=_initial_icon(self.app, self.color or LIGHT["accent"]) if self.app else ICON_URL,
            header=self._header(),
            bar=self.bar,
            body=self.body,
            language=escape(self.language),
            layout=self.layout,
            style=style,
            parts="".join(map(_part, self.parts)),
        )
        headers = {
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        return web.Response(text=text, status=status, headers=headers, content_type="text/html")

    def _header(self) -> str:
        """Return whose page it is: the app's, or this server's if no bar says so."""
        if self.app:
            return _HEADER.format(
                mark=f'<span aria-hidden="true">{_initial(self.app)}</span>', name=escape(self.app)
            )
        return "" if self.bar else _HEADER.format(mark=LOGO, name="Parley")


def _own_colors(color: str) -> str:
    """Return the variables of a page whose buttons and links have the colour of an app."""
    return (
        f":root {{ --accent: {color}; --on-accent: {text_on(color)}; --link: {legible(color, LIGHT)}; }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ --link: {legible(color, DARK)}; }} }}\n"
    )


def _part(path: str) -> str:
    if path.endswith(".css"):
        return f'\n<link rel="stylesheet" href="{path}">'
    return f'\n<script type="module" src="{path}"></script>'


def _initial(name: str) -> str:
    return escape(name[0].upper())


def _initial_icon(name: str, color: str) -> str:
    return f"data:image/svg+xml,{quote(_ICON.format(color=color, on_color=text_on(color), initial=_initial(name)))}"


def _source(url: str) -> str:
    """Return what a content security policy calls the origin of a URL; empty if there is no URL.

    Browsers that follow it (Chromium) also apply `form-action` to redirects. It cannot name IPv6 addresses, so that
    their whole scheme is named (W3C Content Security Policy Level 3, §2.3.1).
    """
    if not url:
        return ""
    origin = URL(url).origin()
    return f"{origin.scheme}:" if ":" in (origin.host or "") else str(origin)


_ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="6" \
fill="{color}"/><text x="12" y="17.5" text-anchor="middle" font-family="sans-serif" font-weight="600" \
font-size="15" fill="{on_color}">{initial}</text></svg>"""
_HEADER = """<header>{mark}{name}</header>
"""
_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title}</title>
<link rel="icon" href="{icon}">
<style>{style}</style>{parts}
</head>
<body class="{layout}">{bar}
<main>
{header}{body}
</main>
</body>
</html>
"""


def wants_html(request: web.Request) -> bool:
    """Return whether a request names `text/html`, with any weight.

    This decides at addresses that people open from emails, where a browser must never be taken for a program: the
    `GET` of a program already has the effect of the link. Elsewhere, `prefers_html` decides.
    """
    return _HTML in weights(request, "Accept")


def prefers_html(request: web.Request) -> bool:
    """Return whether a request names `text/html`, ranks it above JSON, and is no call of the interface.

    This decides at addresses that programs call, where a program must never be taken for a browser: some libraries
    name `text/html` by default.
    """
    if any(name.lower().startswith(_OF_CALLS) for name in request.headers):
        return False
    accepted = weights(request, "Accept")
    html, json = accepted.get(_HTML, 0.0), accepted.get("application/json")
    if json is not None:
        return html > json
    return html > 0 and html >= max(accepted.get("application/*", 0.0), accepted.get("*/*", 0.0))
