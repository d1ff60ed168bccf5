"""Small pages that are made for one request. They contain no scripts and load nothing."""

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from http import HTTPStatus
from typing import Literal

from aiohttp import web

_STYLE = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --text: #373c44; --title: #2d3138;
  --quiet: #5c6370; --line: #e1e5ec; --field: #7b8495; --link: #0172ad; --alert: #8a1c13;
  --alert-background: #fdecea; }
@media (prefers-color-scheme: dark) { :root { --page: #13171f; --card: #181c25; --text: #c2c7d0; --title: #f0f1f3;
  --quiet: #a0a8b8; --line: #2a3140; --field: #6b7589; --link: #01aaff; --alert: #ffb4ab;
  --alert-background: #3a1613; } }
* { box-sizing: border-box; }
html { font: 1rem/1.5 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; color: var(--text);
  background: var(--page); overflow-wrap: anywhere; }
body { margin: 0; }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.25; color: var(--title); }
a { color: var(--link); text-underline-offset: .1em; }
code { font: .9375em ui-monospace, Menlo, Consolas, monospace; }
button { font: inherit; font-weight: 600; color: var(--on-accent); background: var(--accent); cursor: pointer;
  border: 1px solid color-mix(in srgb, var(--title) 25%, var(--accent)); border-radius: .375rem;
  padding: .5rem 1rem; }
button:hover { background: color-mix(in srgb, var(--on-accent) 10%, var(--accent)); }
label { display: block; font-size: .875rem; font-weight: 600; }
input { font: inherit; font-size: 1rem; font-weight: 400; display: block; width: 100%; margin-top: .25rem;
  padding: .5rem .75rem; border: 1px solid var(--field); border-radius: .375rem; background: var(--card);
  color: inherit; }
input:read-only { border-color: var(--line); background: var(--page); color: var(--quiet); }
input[aria-invalid] { border-color: var(--alert); }
:focus-visible { outline: 2px solid var(--title); outline-offset: 2px; }
.error { margin: .5rem 0 0; padding: .5rem .75rem; border-left: 4px solid var(--alert); border-radius: .25rem;
  background: var(--alert-background); color: var(--alert); font-size: .875rem; }
.card { display: grid; min-height: 100vh; min-height: 100dvh; padding: 1rem; align-content: center;
  justify-items: center; }
.card main { width: 100%; max-width: 26rem; padding: 2rem; border: 1px solid var(--line); border-radius: .75rem;
  background: var(--card); box-shadow: 0 .5rem 2rem rgb(15 23 42 / 8%); }
.card header { display: flex; align-items: center; gap: .75rem; margin-bottom: 1.75rem; font-size: 1.125rem;
  font-weight: 600; color: var(--title); }
.card header span { display: grid; place-items: center; flex: none; width: 2.25rem; height: 2.25rem;
  border-radius: .5rem; background: var(--accent); color: var(--on-accent);
  border: 1px solid color-mix(in srgb, var(--title) 25%, var(--accent)); }
.card :is(p, ul) { margin: .75rem 0 0; }
.card ul { padding-left: 1.25rem; }
.card li { margin-top: .25rem; }
.card form { display: grid; gap: 1rem; margin-top: 1.5rem; }
.card form button { width: 100%; padding-block: .625rem; }
.card nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin-top: 1.25rem; }
@media (max-width: 30rem) { .card main { padding: 1.5rem; } }
.list main { max-width: 60rem; margin: 0 auto; padding: .75rem 1rem; }
.list header { display: flex; flex-wrap: wrap; align-items: baseline; justify-content: space-between;
  gap: 0 1rem; }
.list nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; }
.list form { display: flex; align-items: end; gap: .5rem; max-width: 28rem; margin: .75rem 0; }
.list form label { flex: 1; min-width: 0; }
article { border: 1px solid var(--line); border-radius: .5rem; background: var(--card); padding: .75rem 1rem;
  margin: .75rem 0; }
article h2 { font-size: 1.0625rem; line-height: 1.4; margin: 0; color: var(--title); }
article p { margin: 0; font-size: .875rem; color: var(--quiet); }
article summary { cursor: pointer; }
pre { white-space: pre-wrap; font: .875rem/1.5 ui-monospace, Menlo, Consolas, monospace; margin: .75rem 0; }
iframe { width: 100%; height: 24rem; margin-top: .5rem; border: 1px solid var(--line); border-radius: .375rem;
  background: #fff; }
"""
_DEFAULT_COLOR = "#0172ad"
_MIN_CONTRAST = 4.5
"""Of text with its background, by WCAG 2.2."""


def text_on(color: str) -> str:
    """Return the colour, white or black, of text on a background `#rrggbb`.

    It is white if that can be read. Otherwise black has a contrast of at least 4.67, since both multiply to 21.
    """
    return "#fff" if 1.05 / (_luminance(color) + 0.05) >= _MIN_CONTRAST else "#000"


def _luminance(color: str) -> float:
    """Return the relative luminance of a colour, from 0 to 1, by WCAG 2.2."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@dataclass(frozen=True, slots=True)
class Html:
    """A page. `body` is HTML, in which everything that comes from elsewhere is escaped."""

    title: str
    body: str
    language: str = "en"
    color: str | None = None
    """The colour of its buttons, as `#rrggbb`."""
    layout: Literal["card", "list"] = "card"
    """Whether it shows one card, or a list of articles below a header."""
    frames: bool = False
    """Whether it shows documents in frames."""

    def response(self, *, status: int = HTTPStatus.OK) -> web.Response:
        color = self.color or _DEFAULT_COLOR
        style = f":root {{ --accent: {color}; --on-accent: {text_on(color)}; }}{_STYLE}"
        allowed = f"'sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"
        if self.frames:  # The documents in them are shown with their own styles.
            allowed = "'unsafe-inline'"
        policy = (
            f"default-src 'none'; style-src {allowed}; img-src data:; form-action 'self'; base-uri 'none'; "
            "frame-ancestors 'none'"
        )
        text = _PAGE.format(
            title=escape(self.title),
            body=self.body,
            language=escape(self.language),
            layout=self.layout,
            style=style,
        )
        headers = {
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
        }
        return web.Response(text=text, status=status, headers=headers, content_type="text/html")


_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body class="{layout}">
<main>
{body}
</main>
</body>
</html>
"""


def wants_html(request: web.Request) -> bool:
    """Return whether the caller is a browser that shows the response."""
    return "text/html" in request.headers.get("Accept", "")
