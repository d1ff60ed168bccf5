"""The bar at the top of a page: the logo, and in development links to all pages of this server."""

from pathlib import Path

from app.http.rows.endpoint import DEFAULT_APP
from app.playground import playground_shown
from app.services import Services
from streams.wire.page_style import LOGO

TALK, REFERENCE, GUIDES, CONSOLE = "/", "/docs", "/docs/guides", "/console"
GUIDES_FOLDER = Path(__file__).parents[1] / "docs" / "guides"
"""The guides in the repository. An installed wheel does not contain them."""
_PAGES = {
    TALK: "Talk",
    "/dev/accounts": "Accounts",
    "/dev/payments": "Payments",
    "/dev/engagement": "Engagement",
    "/dev/mail": "Emails",
    "/dev/sms": "SMS",
    GUIDES: "Guides",
    REFERENCE: "API reference",
    CONSOLE: "Console",
}
"""The titles of the pages, in the order of the links."""


def bar(services: Services, current: str) -> str:
    """Return the bar of a page without scripts. `current` is the path of one of the pages, or any other path."""
    return f'<header class="page-bar">{bar_links(services, current)}</header>'


def bar_links(services: Services, current: str) -> str:
    """Return the logo, the name and the links of a bar, as HTML.

    In production there are no links: the users of an app need not know which other pages the server has. On narrow
    screens the links are a popover, which a button with the title of the current page opens.
    """
    pages = _shown(services) if services.settings.development else {}
    if not pages:
        own = f"<small>{_PAGES[current]}</small>" if current in {REFERENCE, CONSOLE} else ""
        return f'<span class="page-name">{LOGO}Parley{own}</span>'
    links = "".join(
        f'<a href="{path}"{_CURRENT if path == current else ""}>{title}</a>' for path, title in pages.items()
    )
    return (
        f'<a class="page-name" href="{next(iter(pages))}">{LOGO}Parley</a>'
        f'<button class="page-menu" type="button" popovertarget="pages">{_PAGES.get(current, "Pages")}</button>'
        f'<nav id="pages" popover aria-label="Parley">{links}</nav>'
    )


_CURRENT = ' aria-current="page"'


def _shown(services: Services) -> dict[str, str]:
    """Return the pages that a development server has."""
    hidden = {
        TALK: not playground_shown(services, DEFAULT_APP),
        REFERENCE: not services.settings.shows_docs,
        GUIDES: not GUIDES_FOLDER.is_dir(),
        CONSOLE: not services.settings.shows_console,
    }
    return {path: title for path, title in _PAGES.items() if not hidden.get(path)}
