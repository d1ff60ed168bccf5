"""The pages on which developers try logins, payments and engagement. Only development servers have them."""

from aiohttp import web

from app.http.errors import PathNotFound
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Path
from app.page_bar import bar_links
from app.pages.assets import is_part, static_page
from app.pages.rows import page_row
from streams.wire.model import Model

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:{pictures}; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FOLDERS = frozenset({"accounts", "client", "engagement", "inbox", "payments", "shared", "talk", "vendor"})


class DeveloperPartPath(Model):
    part: str
    """A file of the pages."""


async def accounts_page(call: Call) -> web.Response:
    """Open the page on which every way to log in can be tried.

    Only development servers have this page.
    """
    return await _page(call, "accounts")


async def payments_page(call: Call) -> web.Response:
    """Open the page on which products are bought at the sandbox.

    Only development servers have this page.
    """
    return await _page(call, "payments")


async def engagement_page(call: Call) -> web.Response:
    """Open the page with a leaderboard, an image task and an email.

    Only development servers have this page.
    """
    return await _page(call, "engagement")


async def developer_part(call: Call, path: Path[DeveloperPartPath]) -> web.Response:
    """Read a file of the pages for developers."""
    if not is_part(path.part, _FOLDERS):
        raise PathNotFound(call.request.path)
    return await static_page(path.part).response(call.request, policy=_policy(call))


async def _page(call: Call, name: str) -> web.Response:
    bar = bar_links(call.services, f"/dev/{name}")
    return await static_page(f"{name}/index.html", bar=bar).response(call.request, policy=_policy(call))


def _policy(call: Call) -> str:
    """Return the content security policy. Pictures may come from the sandbox and from this server."""
    settings = call.services.settings
    urls = [url for url in (settings.sandbox_url, settings.public_url) if url is not None]
    return _POLICY.format(pictures="".join(f" {url}" for url in urls))


DEVELOPER_PAGE_ROUTES = [
    page_row("/dev/accounts", accounts_page, "text/html"),
    page_row("/dev/payments", payments_page, "text/html"),
    page_row("/dev/engagement", engagement_page, "text/html"),
    page_row("/dev/static/{part:.+}", developer_part, "*/*", errors=(PathNotFound,)),
]
