"""Sessions of operators in the console: sign-in with a token and a code of an authenticator, and sign-out."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from app.admin.area import FOR_VIEWERS
from app.http.callers.caller import Access
from app.http.callers.console_sessions import (
    OF_SIGN_IN,
    CrossSiteRequest,
    check_own_site,
    cookie_headers,
    csrf_token,
    session_token,
)
from app.http.callers.operators import TokenExpired, TooManyFailures, operator_with, origin_of
from app.http.rows.docs import Docs
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body
from app.http.rows.replies import Empty, Json
from storage.configs.kinds.limits import Rate
from storage.operators import console_sessions, totp
from storage.operators.audit import OPERATOR, Subject, record_change
from storage.operators.operators import Operator
from streams.wire.errors import (
    AuthFailed,
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    RateLimited,
    ValkeyError,
    ValkeyUnavailable,
)
from streams.wire.model import Model
from streams.wire.typed import typed_code

CODES = Rate(count=10, per_s=900)
"""Limit on the wrong codes of an operator."""
_ISSUER = "Parley"


class CodeRefused(AuthFailed):
    """The code is wrong, or it was used before."""

    def __init__(self) -> None:
        super().__init__("the code is wrong or was used before")


class TooManyCodes(RateLimited):
    """Too many codes of the operator were wrong."""

    def __init__(self, *, retry_after_s: float) -> None:
        super().__init__("too many codes of this operator", retry_after_s=retry_after_s)


class SignInBody(Model):
    token: str
    """The token of an operator."""
    code: str | None = Field(default=None, max_length=64)
    """The code that the operator's authenticator shows."""


class AuthenticatorView(Model):
    secret: str
    """In base32, to be typed."""
    uri: str
    """To be read from a QR code."""


class SignInReply(Model):
    """The session, or what the sign-in still requires."""

    state: Literal["signed_in", "needs_code", "needs_authenticator"]
    """`needs_code`: repeat the call with a code. `needs_authenticator`: set up an authenticator first."""
    csrf: str | None = None
    """The value of `X-Parley-Csrf` for calls that change something."""
    authenticator: AuthenticatorView | None = None
    """The authenticator to be set up."""


async def sign_in(call: Call, body: Body[SignInBody]) -> Json[SignInReply]:
    """Sign in to the console.

    The call needs the token of an operator and a code of the operator's authenticator (RFC 6238). Without a code,
    the reply says what is required. The first code confirms a new authenticator. The reply sets the cookie of the
    session, which the admin API accepts in place of `Authorization`. Calls that change something then need
    `X-Parley-Csrf`. Only servers with the console have this endpoint.
    """
    check_own_site(call.request)
    services = call.services
    operator = await operator_with(call.request, services, body.token.strip())
    async with services.database.transaction() as conn:
        authenticator = await console_sessions.authenticator(conn, operator.operator_id, keyring=services.keyring)
        if body.code is None:
            return _missing(operator, authenticator)
        step = authenticator.step_of(typed_code(body.code))
        await _count_code(call, operator, calls=1 if step is None else 0)
        if step is None:
            raise CodeRefused
        await console_sessions.use_code(conn, operator.operator_id, step=step)
        if (earlier := session_token(call.request, services.settings)) is not None:
            await console_sessions.end(conn, earlier)
        token = await console_sessions.begin(conn, operator.operator_id)
        origin = origin_of(call.request, services, operator, request_id=call.request_id)
        await record_change(conn, origin, action="operator.sign_in", subject=Subject(None, OPERATOR, operator.name))
    return Json({"state": "signed_in", "csrf": csrf_token(token)}, cookie_headers(services.settings, token))


async def sign_out(call: Call) -> Json[Empty]:
    """Sign out of the console.

    This ends the session of the call. A call with a token in `Authorization` has no effect.
    """
    token = session_token(call.request, call.services.settings)
    if token is not None:
        async with call.services.database.transaction() as conn:
            await console_sessions.end(conn, token)
    return Json({}, cookie_headers(call.services.settings, None))


async def _count_code(call: Call, operator: Operator, *, calls: Literal[0, 1]) -> None:
    """Count a wrong code, or check with `calls=0` whether a right one is accepted. Raises `TooManyCodes`.

    The row of the operator is locked, so that concurrent guesses do not exceed the limit.
    """
    who = f"operator:{operator.operator_id}"
    count = await call.services.limiter.count(CODES, app_id="", name="operator_code", who=who, calls=calls)
    if count.wait_s > 0:
        raise TooManyCodes(retry_after_s=count.wait_s)


def _missing(operator: Operator, authenticator: console_sessions.Authenticator) -> Json[SignInReply]:
    if authenticator.confirmed:
        return Json({"state": "needs_code"})
    uri = totp.uri(authenticator.secret, issuer=_ISSUER, account=operator.name)
    shown = {"secret": authenticator.secret, "uri": uri}
    return Json({"state": "needs_authenticator", "authenticator": shown}, {"Cache-Control": "no-store"})


_SIGN_IN = replace(FOR_VIEWERS, access=Access.PUBLIC, role=None, ignores_app=True)
_STORES = (DatabaseError, DatabaseUnavailable, ValkeyError, ValkeyUnavailable)
_ERRORS = (
    CrossSiteRequest,
    AuthFailed,
    TokenExpired,
    TooManyFailures,
    CodeRefused,
    TooManyCodes,
    ConfigInvalid,
    *_STORES,
)

SESSION_ROUTES = [
    Endpoint("POST", "/admin/api/session", sign_in, _SIGN_IN, errors=_ERRORS, docs=Docs(headers=OF_SIGN_IN)),
    Endpoint("DELETE", "/admin/api/session", sign_out, FOR_VIEWERS),
]
