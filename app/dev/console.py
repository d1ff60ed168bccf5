"""The one-time link to the console that `make run` prints."""

import hmac
import secrets
import time
from datetime import UTC, datetime

from app.dev.area import DEVELOPMENT
from app.http.callers.console_sessions import (
    OF_SIGN_IN,
    CrossSiteRequest,
    check_own_site,
    cookie_headers,
    csrf_token,
)
from app.http.rows.docs import Docs
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body
from app.http.rows.replies import Json
from storage.accounts import single_use
from storage.operators import console_sessions, operators
from storage.operators.audit import COMMAND
from storage.operators.operators import OperatorNotFound, Role
from storage.postgres.database import Connection
from storage.secrets import Keyring
from streams.wire.errors import AuthFailed, DatabaseError, DatabaseUnavailable
from streams.wire.model import Model

_VALID_S = 3600
_USE = "console_link"
_OPERATOR = "developer"


class LinkBody(Model):
    code: str
    """The part of the link after `#link=`."""


class LinkReply(Model):
    """The CSRF token of the session."""

    csrf: str
    """The value of `X-Parley-Csrf` for calls that change something."""


class LinkRefused(AuthFailed):
    """The link is wrong, was used before, or has expired."""

    def __init__(self) -> None:
        super().__init__("the link was used before or has expired: restart `make run` for another one")


def console_link(keyring: Keyring) -> str:
    """Return the path of a one-time link to the console."""
    text = f"{int(time.time()) + _VALID_S}.{secrets.token_hex(16)}"
    return f"/console#link={text}.{_mac(keyring, text)}"


async def sign_in_by_link(call: Call, body: Body[LinkBody]) -> Json[LinkReply]:
    """Sign in to the console by the link that `make run` prints.

    The session is that of the operator `developer`, who is an admin. Only development servers have this endpoint.
    """
    check_own_site(call.request)
    services = call.services
    expires_at = _expiry(services.keyring, body.code)
    async with services.database.transaction() as conn:
        now = datetime.now(UTC)
        if not await single_use.use_once(conn, "default", what=_USE, value=body.code, now=now, until=expires_at):
            raise LinkRefused
        token = await console_sessions.begin(conn, await _developer(conn))
    return Json({"csrf": csrf_token(token)}, cookie_headers(services.settings, token))


def _expiry(keyring: Keyring, code: str) -> datetime:
    text, _, mac = code.rpartition(".")
    expires, _, _ = text.partition(".")
    if not hmac.compare_digest(mac.encode(), _mac(keyring, text).encode()) or int(expires) <= time.time():
        raise LinkRefused
    return datetime.fromtimestamp(int(expires), UTC)


def _mac(keyring: Keyring, text: str) -> str:
    return hmac.digest(keyring.derive("console link"), text.encode(), "sha256").hex()


async def _developer(conn: Connection) -> str:
    """Return the id of the operator `developer`, who is added if missing."""
    try:
        operator = await operators.lock(conn, _OPERATOR)
    except OperatorNotFound:
        operator, _ = await operators.add(conn, _OPERATOR, role=Role.ADMIN, expires_at=None, origin=COMMAND)
    return operator.operator_id


CONSOLE_LINK_ROUTES = [
    Endpoint(
        "POST",
        "/dev/console/session",
        sign_in_by_link,
        DEVELOPMENT,
        errors=(CrossSiteRequest, LinkRefused, DatabaseError, DatabaseUnavailable),
        docs=Docs(headers=OF_SIGN_IN),
    )
]
