"""Sessions of operators in the console: their cookie, and the token against cross-site requests (CSRF)."""

import hashlib
import hmac
from urllib.parse import urlsplit

from aiohttp import web

from app.settings import Settings
from storage.operators.console_sessions import MAX_S
from streams.wire.errors import AuthFailed, PermissionDenied

CSRF_HEADER = "X-Parley-Csrf"
OF_SIGN_IN = {CSRF_HEADER: "Required, with any value: pages of other sites cannot send it."}
"""The description of the header that a sign-in must have."""
UNUSED_HEADER = "X-Parley-Background"
"""A call with this header does not count as use of the session, which ends when it is not used."""
_COOKIE = "parley_console"
_READING = frozenset({"GET", "HEAD"})
_OWN_SITE = frozenset({"same-origin", "none"})


class SessionEnded(AuthFailed):
    """The operator's session in the console has ended."""

    def __init__(self) -> None:
        super().__init__("the session has ended: sign in again")


class CrossSiteRequest(PermissionDenied):
    """The call has the cookie of a session, but does not come from a page of the console."""

    def __init__(self) -> None:
        super().__init__(f"{CSRF_HEADER} is missing or wrong")


def session_token(request: web.Request, settings: Settings) -> str | None:
    """Return the token of the session that a call without `Authorization` uses, if it has one."""
    if not settings.shows_console or "Authorization" in request.headers:
        return None
    return request.cookies.get(_cookie_name(settings))


def csrf_token(token: str) -> str:
    """Return the token that only pages of this server can know, for the session with this token."""
    return hashlib.sha256(f"csrf {token}".encode()).hexdigest()


def check_csrf(request: web.Request, token: str) -> None:
    """Check that a changing call comes from a page of the console. Raises `CrossSiteRequest`."""
    given = request.headers.get(CSRF_HEADER, "").encode("utf-8", "surrogateescape")
    if request.method not in _READING and not hmac.compare_digest(given, csrf_token(token).encode()):
        raise CrossSiteRequest


def check_own_site(request: web.Request) -> None:
    """Check that a page of another site does not sign its visitor in. Raises `CrossSiteRequest`."""
    if request.headers.get("Sec-Fetch-Site", "none") not in _OWN_SITE or CSRF_HEADER not in request.headers:
        raise CrossSiteRequest


def cookie_headers(settings: Settings, token: str | None) -> dict[str, str]:
    """Return the headers of a response that stores the cookie of a session, or deletes it if `token` is `None`."""
    secure = "; Secure" if _is_secure(settings) else ""
    cookie = f"{_cookie_name(settings)}={token or ''}; Max-Age={MAX_S if token else 0}; Path=/"
    return {"Set-Cookie": f"{cookie}; HttpOnly; SameSite=Strict{secure}", "Cache-Control": "no-store"}


def _cookie_name(settings: Settings) -> str:
    return f"__Host-{_COOKIE}" if _is_secure(settings) else _COOKIE


def _is_secure(settings: Settings) -> bool:
    return urlsplit(settings.public_url).scheme == "https"
