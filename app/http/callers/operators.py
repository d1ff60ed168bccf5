"""Authentication of operators by a bearer token or a session of the console, and the origin of their changes."""

import hmac
from typing import Literal

from aiohttp import web

from app.http.callers.addresses import client_network, peer_ip
from app.http.callers.console_sessions import UNUSED_HEADER, SessionEnded, check_csrf, session_token
from app.services import Services
from storage.configs.kinds.limits import Rate
from storage.operators import console_sessions, operators
from storage.operators.audit import ROOT, Origin
from storage.operators.operators import Operator, Role
from streams.wire.errors import AuthFailed, InvalidParameter, PermissionDenied, RateLimited
from streams.wire.lines import has_visible, is_line

REASON_HEADER = "X-Parley-Reason"
FAILURES = Rate(count=100, per_s=900)
"""The failed calls that are allowed per IP address."""
_REASON_CHARACTERS = 500
_REFUSED = "Authorization is missing or wrong"


class TokenExpired(AuthFailed):
    """The token of the operator has expired."""

    def __init__(self) -> None:
        super().__init__("the token in Authorization has expired")


class RoleTooLow(PermissionDenied):
    """The operator's role does not include the one that the endpoint needs. The message names it."""

    def __init__(self, needed: Role) -> None:
        super().__init__(f"this requires the role {needed.value}")


class TooManyFailures(RateLimited):
    """Too many calls from the client's address had a wrong token."""

    def __init__(self, *, retry_after_s: float) -> None:
        super().__init__("too many failed calls from this address", retry_after_s=retry_after_s)


async def identify(request: web.Request, services: Services, *, needed: Role) -> Operator | None:
    """Return the operator that calls, or `None` if the caller has the root token, which includes every role.

    Raises `AuthFailed`, `TokenExpired`, `RoleTooLow` if the operator's role does not include `needed`, and
    `TooManyFailures` after too many failed calls from the same address. The root token is not accepted from such an
    address either, because it may be weak. Tokens of operators are still accepted: they cannot be guessed, and an
    operator who shares an address with an attacker must not be locked out.

    A call without `Authorization` may have the cookie of a session. Raises `SessionEnded` and `CrossSiteRequest`.
    An ended session does not count as a failed call: nobody can guess one, and a page may ask with it again.
    """
    if (session := session_token(request, services.settings)) is not None:
        operator = await _of_session(request, services, session)
    else:
        token = _bearer_token(request)
        if _is_root_token(services, token):
            await _admit_guess(request, services, is_wrong=False)
            return None
        operator = await operator_with(request, services, token)
    if not operator.role.includes(needed):
        raise RoleTooLow(needed)
    return operator


async def operator_with(request: web.Request, services: Services, token: str) -> Operator:
    """Return the operator with this token. Raises `AuthFailed`, `TokenExpired` and `TooManyFailures`."""
    if not await services.operator_tokens.include(token):
        await _admit_guess(request, services, is_wrong=True)
    operator = await operators.find_by_token(services.database, token)
    if operator is None:
        raise AuthFailed(_REFUSED)
    if operator.expired:
        raise TokenExpired
    return operator


async def _of_session(request: web.Request, services: Services, session: str) -> Operator:
    is_use = UNUSED_HEADER not in request.headers
    operator = await console_sessions.find(services.database, session, is_use=is_use)
    if operator is None:
        raise SessionEnded
    if operator.expired:
        raise TokenExpired
    check_csrf(request, session)
    return operator


def origin_of(request: web.Request, services: Services, operator: Operator | None, *, request_id: str) -> Origin:
    """Return the origin of the changes that a request makes. `operator` is `None` for the root token."""
    return Origin(
        actor=ROOT if operator is None else operator.name,
        operator_id=None if operator is None else operator.operator_id,
        request_id=request_id,
        address=peer_ip(request, services.settings.trusted_proxies),
        reason=_reason(request),
    )


def _bearer_token(request: web.Request) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise AuthFailed(_REFUSED)
    return token.strip()


def _is_root_token(services: Services, token: str) -> bool:
    expected = services.settings.admin_token.get_secret_value()
    matches = hmac.compare_digest(token.encode("utf-8", "surrogateescape"), expected.encode())
    return matches and expected != ""


async def _admit_guess(request: web.Request, services: Services, *, is_wrong: bool) -> None:
    """Raise `TooManyFailures` after too many failed calls from the client's address. Otherwise count a wrong one.

    Both are one step, which comes before the query for an operator and before any response. So concurrent guesses
    do not exceed the limit. A token that an operator got within the last second may be counted, but is accepted.
    """
    who = f"address:{client_network(request, services.settings.trusted_proxies)}"
    calls: Literal[0, 1] = 1 if is_wrong else 0
    count = await services.limiter.count(FAILURES, app_id="", name="operator", who=who, calls=calls)
    if count.wait_s > 0:
        raise TooManyFailures(retry_after_s=count.wait_s)


def _reason(request: web.Request) -> str:
    reason = request.headers.get(REASON_HEADER, "")
    if len(reason) > _REASON_CHARACTERS or not is_line(reason):
        raise InvalidParameter(f"{REASON_HEADER} must be at most {_REASON_CHARACTERS} characters of one line")
    return reason if has_visible(reason) else ""
