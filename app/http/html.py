"""Small pages that are made for one request. They contain no scripts and load nothing."""

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from html import escape
from http import HTTPStatus

from aiohttp import web

_STYLE = """
:root { color-scheme: light dark; --accent: %s; font: 1rem/1.5 system-ui, sans-serif; }
body { margin: 0; padding: 1.5rem; }
main { max-width: %s; margin: 0 auto; }
h1 { font-size: 1.5rem; line-height: 1.25; }
header { font-weight: 600; color: color-mix(in srgb, CanvasText 65%%, Canvas); margin-bottom: 2rem; }
button { font: inherit; font-weight: 600; color: #fff; background: var(--accent); border: 1px solid var(--accent);
  border-radius: .5rem; padding: .5rem 1.25rem; cursor: pointer; }
label { display: block; margin: 1rem 0; }
input { font: inherit; display: block; box-sizing: border-box; width: 100%%; margin-top: .25rem;
  padding: .5rem .75rem; border: 1px solid GrayText; border-radius: .5rem; background: Canvas; color: CanvasText; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
article { border: 1px solid color-mix(in srgb, CanvasText 20%%, Canvas); border-radius: .5rem;
  padding: 1rem 1.25rem; margin: 1rem 0; overflow-wrap: anywhere; }
article h2 { font-size: 1.1rem; margin: 0; }
article p { margin: 0; color: color-mix(in srgb, CanvasText 65%%, Canvas); }
pre { white-space: pre-wrap; font: .9375rem/1.5 ui-monospace, monospace; margin: 1rem 0; }
iframe { box-sizing: border-box; width: 100%%; height: 24rem; border: 1px solid GrayText; border-radius: .5rem;
  background: #fff; }
.row { display: flex; align-items: end; gap: .75rem; margin: 1rem 0; }
.row label { flex: 1; min-width: 0; margin: 0; }
.error { border-left: .25rem solid #c62828; padding-left: .75rem; }
"""
_DEFAULT_COLOR = "#1f6feb"


@dataclass(frozen=True, slots=True)
class Html:
    """A page. `body` is HTML, in which everything that comes from elsewhere is escaped."""

    title: str
    body: str
    language: str = "en"
    color: str | None = None
    """The colour of its buttons, as `#rrggbb`."""
    width: str = "28rem"
    frames: bool = False
    """Whether it shows documents in frames."""

    def response(self, *, status: int = HTTPStatus.OK) -> web.Response:
        style = _STYLE % (self.color or _DEFAULT_COLOR, self.width)
        allowed = f"'sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}'"
        if self.frames:  # The documents in them are shown with their own styles.
            allowed = "'unsafe-inline'"
        policy = (
            f"default-src 'none'; style-src {allowed}; img-src data:; form-action 'self'; base-uri 'none'; "
            "frame-ancestors 'none'"
        )
        text = _PAGE.format(title=escape(self.title), body=self.body, language=escape(self.language), style=style)
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
<body>
<main>
{body}
</main>
</body>
</html>
"""


def wants_html(request: web.Request) -> bool:
    """Return whether the caller is a browser that shows the response."""
    return "text/html" in request.headers.get("Accept", "")
