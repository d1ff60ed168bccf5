"""The page on which developers try every way to log in. Only development servers have it."""

import re

from aiohttp import web

from app.http.endpoint import Call
from app.http.errors import PathNotFound
from app.http.inputs import Path
from app.pages.assets import DOCS_LINK, STATIC, static_page
from app.pages.rows import page_row
from streams.wire.model import Model

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:{pictures}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PART = re.compile(r"(?:accounts|talk|vendor)/[a-z0-9_-]+\.(?:css|js)", re.ASCII)


class AccountsPartPath(Model):
    part: str
    """A file of the page."""


async def accounts_page(call: Call) -> web.Response:
    """Open the page on which every way to log in can be tried.

    Only development servers have this page.
    """
    hidden = () if call.services.settings.shows_docs else (DOCS_LINK,)
    return await static_page("accounts/index.html", without=hidden).response(call.request, policy=_policy(call))


async def accounts_part(call: Call, path: Path[AccountsPartPath]) -> web.Response:
    """Read a file of the accounts page."""
    if not _PART.fullmatch(path.part) or not (STATIC / path.part).is_file():
        raise PathNotFound(call.request.path)
    return await static_page(path.part).response(call.request, policy=_policy(call))


def _policy(call: Call) -> str:
    """Return the policy of the page, which shows the pictures of people from the sandbox."""
    sandbox_url = call.services.settings.sandbox_url
    return _POLICY.format(pictures="" if sandbox_url is None else f" {sandbox_url}")


ACCOUNTS_PAGE_ROUTES = [
    page_row("/dev/accounts", accounts_page, "text/html"),
    page_row("/dev/static/{part:.+}", accounts_part, "*/*", errors=(PathNotFound,)),
]
