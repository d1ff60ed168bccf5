"""The sandbox's PayPal, under `/paypal`: stateful, with a clock of its own for each merchant.

A merchant is a `client_id`. Any secret except `wrong` is accepted, and selects faults as other keys do. The README
describes what can be done to a merchant from outside.
"""

import time
from base64 import b64decode, urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from datetime import timedelta
from functools import partial
from secrets import token_hex
from typing import Any

from aiohttp import web

from streams.wire.codec import loads
from vendors.sandbox.calls import Call, Dialect, Refusal
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.payments.paypal import payouts, subscriptions
from vendors.sandbox.payments.paypal.control import Control
from vendors.sandbox.payments.paypal.objects import ROWS, Asked, Row
from vendors.sandbox.payments.paypal.pages import Pages
from vendors.sandbox.payments.paypal.plans import add_seeds
from vendors.sandbox.payments.paypal.state import Merchant, Merchants, Reply
from vendors.sandbox.payments.paypal.webhooks import CERTIFICATES, certificate, send
from vendors.sandbox.payments.paypal.wire import refusal
from vendors.sandbox.sandbox import Sandbox

_TOKEN_S = 32_400
_MAX_TOKENS = 1_000
_MAX_REPLIES = 10_000
_MARK = "A21AA"
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError)
"""The exceptions of handlers for bodies whose fields have other types than PayPal's."""


def _refuse(fault: Fault, key_options: KeyOptions) -> Refusal:
    retry = {"Retry-After": f"{key_options.retry_after_s:g}"}
    match fault:
        case Fault.UNAUTHORIZED:
            error = {"error": "invalid_token", "error_description": "Token signature verification failed"}
            return Refusal(401, error)
        case Fault.OUT_OF_QUOTA:
            return refusal(403, "PERMISSION_DENIED", "You do not have permission.", name="NOT_AUTHORIZED")
        case Fault.RATE_LIMITED:
            limited = refusal(429, name="RATE_LIMIT_REACHED")
            limited.headers |= retry
            return limited
        case Fault.UNAVAILABLE:
            return refusal(503, name="SERVICE_UNAVAILABLE")
    return refusal(500, name="INTERNAL_SERVER_ERROR")


def _refuse_login(fault: Fault, key_options: KeyOptions) -> Refusal:
    if fault is Fault.UNAUTHORIZED:
        error = {"error": "invalid_client", "error_description": "Client Authentication failed"}
        return Refusal(401, error)
    return _refuse(fault, key_options)


def _debug_id(request: web.Request) -> dict[str, str]:
    return {"Paypal-Debug-Id": token_hex(7)[:13]}


def _secret_of_token(request: web.Request) -> str:
    """Return the secret with which a token was made, which selects the faults of all calls."""
    return _login_of_token(request)[1]


def _login_of_token(request: web.Request) -> tuple[str, str]:
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    try:
        client_id, secret, _ = urlsafe_b64decode(token.removeprefix(_MARK)).decode().split("\n")
    except ValueError:
        return "", ""
    return client_id, secret


def _login(request: web.Request) -> tuple[str, str]:
    kind, _, value = request.headers.get("Authorization", "").partition(" ")
    try:
        client_id, _, secret = b64decode(value, validate=True).decode().partition(":")
    except (NotBase64, ValueError):
        return "", ""
    return (client_id, secret) if kind == "Basic" else ("", "")


def _login_key(request: web.Request) -> str:
    """Return a key without faults, so that a secret with a fault gets a token. `paypal_login` has its own."""
    client_id, secret = _login(request)
    return "sandbox" if client_id and secret not in {"", "wrong"} else "wrong"


_PAYPAL = Dialect("paypal", _secret_of_token, _refuse, _debug_id)
_LOGIN = Dialect("paypal_login", _login_key, _refuse_login, _debug_id)
_CERTIFICATES = Dialect("paypal_certificates", lambda _: "sandbox", _refuse)


class _PayPal:
    """The state of one sandbox, and the calls to it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.merchants = Merchants(_new_merchant)
        self._sandbox = sandbox

    async def issue_token(self, call: Call) -> None:
        if (await call.request.post()).get("grant_type") != "client_credentials":
            raise Refusal(400, {"error": "unsupported_grant_type", "error_description": "unsupported grant_type"})
        client_id, secret = _login(call.request)
        token = _MARK + urlsafe_b64encode(f"{client_id}\n{secret}\n{token_hex(16)}".encode()).decode()
        tokens = self.merchants.of(client_id, _origin(call.request)).tokens
        tokens[token] = time.monotonic() + _TOKEN_S
        if len(tokens) > _MAX_TOKENS:
            del tokens[next(iter(tokens))]
        answer = {
            "scope": "https://uri.paypal.com/services/subscriptions https://uri.paypal.com/services/payments/payouts",
            "access_token": token,
            "token_type": "Bearer",
            "app_id": "APP-80W284485P519543T",
            "expires_in": _TOKEN_S,
            "nonce": token_hex(16),
        }
        await call.answer(answer, empty={})

    async def handle(self, row: Row, call: Call) -> None:
        asked = await self._asked(call)
        merchant = asked.merchant
        _advance(merchant)
        known = merchant.replies.get((call.request.path, asked.key)) if row.kept and asked.key else None
        if known is not None and row.kept and merchant.now - known.at <= row.kept:
            send(self._sandbox, merchant)
            await call.answer(known.body, empty={})
            return
        try:
            value = row.handle(asked)
        except _MALFORMED:
            raise refusal(400, "MALFORMED_REQUEST_JSON", "The request JSON is not well formed.") from None
        if row.minimal and call.request.headers.get("Prefer") != "return=representation":
            value = {name: value[name] for name in ("id", "status", "links")}
        if row.kept and asked.key:
            _keep(merchant, (call.request.path, asked.key), Reply(merchant.now, row.status, value))
        send(self._sandbox, merchant)
        if asked.times_out:
            call.fault = Fault.HANG_BEFORE_OUTPUT
        await call.answer(b"" if value is None else value, empty={}, status=row.status)

    def move_clock(self, client_id: str, offset: timedelta) -> None:
        """Move a merchant's clock, and process what becomes due."""
        merchant = self.merchants.of(client_id)
        merchant.offset = offset
        _advance(merchant)
        send(self._sandbox, merchant)

    async def _asked(self, call: Call) -> Asked:
        request = call.request
        client_id, _ = _login_of_token(request)
        merchant = self.merchants.of(client_id, _origin(request))
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if merchant.tokens.get(token, 0) < time.monotonic():
            raise _refuse(Fault.UNAUTHORIZED, call.key_options)
        raw = await request.read()
        if request.method == "POST" and request.content_type != "application/json":
            raise refusal(415, name="UNSUPPORTED_MEDIA_TYPE")
        body = _object(raw)
        key = request.headers.get("PayPal-Request-Id", "")
        call.record(client_id=client_id, path=request.path, key=key, body=body, query=dict(request.query))
        return Asked(merchant, request.match_info, request.query, body, key, raw)


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    paypal = _PayPal(sandbox)
    sandbox.clocks.append(paypal.move_clock)
    add = {"GET": sandbox.get, "POST": sandbox.post}
    return [
        sandbox.post("/paypal/v1/oauth2/token", _LOGIN, "token", paypal.issue_token),
        sandbox.get(f"{CERTIFICATES}/{{name}}", _CERTIFICATES, "certificate", _certificate),
        *(add[row.method](f"/paypal{row.path}", _PAYPAL, row.stage, partial(paypal.handle, row)) for row in ROWS),
        *Pages(sandbox, paypal.merchants).routes(),
        *Control(sandbox, paypal.merchants, _advance).routes(),
    ]


async def _certificate(call: Call) -> None:
    found = certificate(call.request.match_info["name"])
    if found is None:
        raise refusal(404)
    await call.answer(found, empty=b"", content_type="application/x-pem-file")


def _new_merchant(client_id: str, origin: str) -> Merchant:
    merchant = Merchant(client_id, origin)
    add_seeds(merchant)
    return merchant


def _advance(merchant: Merchant) -> None:
    """Process what is due by the merchant's clock."""
    for subscription in merchant.subscriptions.values():
        subscriptions.advance(merchant, subscription)
    for payout in merchant.payouts.values():
        payouts.advance(merchant, payout)


def _keep(merchant: Merchant, key: tuple[str, str], reply: Reply) -> None:
    merchant.replies[key] = reply
    if len(merchant.replies) > _MAX_REPLIES:
        del merchant.replies[next(iter(merchant.replies))]


def _origin(request: web.Request) -> str:
    return f"{request.scheme}://{request.host}/paypal"


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = loads(raw) if raw else {}
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise refusal(400, "MALFORMED_REQUEST_JSON", "The request JSON is not well formed.")
    return body
