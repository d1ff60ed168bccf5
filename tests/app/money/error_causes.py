"""What causes the errors that many endpoints of money have, and the cases of the tests."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from app.http.endpoint import Endpoint
from app.http.errors import DeactivationPending, InvalidApiVersion, UserNotFound
from app.http.paths import is_server_path
from app.http.webhooks import WebhookUnverified
from app.routes import ASSET_ROUTES, CARD_ROUTES, WALLET_ROUTES, WEBHOOK_ROUTES, WITHDRAWAL_ROUTES
from storage import sessions
from storage.errors import AnswerNotKept, KeyReused, RequestRunning
from streams.wire.errors import (
    AppNotFound,
    AuthFailed,
    BackendUnavailable,
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InternalError,
    InvalidParameter,
    InvalidSession,
    PermissionDenied,
    RateLimited,
    TooLarge,
    Unavailable,
    ValkeyError,
    ValkeyUnavailable,
)
from streams.wire.ids import new_id
from tests.app.callers import token
from tests.app.money import good_requests as to
from tests.app.money.till import Answer, Place, Request, Till
from vendors.errors import VendorError
from vendors.sandbox.faults import key_of

MONEY_WEBHOOK_ROUTES = [
    row for row in WEBHOOK_ROUTES if row.path.split("/")[3] in {"cardpay", "walletpay", "payouts"}
]
ROWS: dict[Place, Endpoint] = {
    (row.method, path): row
    for row in (*ASSET_ROUTES, *CARD_ROUTES, *WALLET_ROUTES, *WITHDRAWAL_ROUTES, *MONEY_WEBHOOK_ROUTES)
    for path in row.paths
}
"""The rows of money by place."""
WEBHOOKS = frozenset((row.method, row.path) for row in MONEY_WEBHOOK_ROUTES)
ELSEWHERE = {
    InternalError: "only a bug causes it",
    ValkeyError: "none of these endpoints reports it, as `test_money_outages.py` shows",
    ValkeyUnavailable: "the same",
    DatabaseUnavailable: "`test_money_outages.py` stops the database",
    Unavailable: "`test_single_use_tokens.py` stops Valkey, `tests/app/ai/test_large_responses.py` does not read",
}
"""Errors that one test causes for all rows, or none can."""
IMPOSSIBLE = {
    (("POST", "/bp/webhook/cardpay/{app_id}/{config}"), WebhookUnverified): "the signature needs no call",
}
"""Errors that a row lists because its kind of rows does."""


@dataclass(frozen=True)
class Case:
    till: Till
    place: Place
    request: Request
    """A request that would succeed. Most causes change it so that it has no effect."""

    @property
    def row(self) -> Endpoint:
        return ROWS[self.place]

    @property
    def of_server(self) -> bool:
        return is_server_path(self.place[1])

    async def ask(self, request: Request | None = None, **changes: Any) -> Answer:
        """Send the request, or another one, with other fields of the body."""
        request = request or self.request
        return await self.till.ask(replace(request, body={**request.body, **changes}) if changes else request)

    async def new(self) -> Request:
        return await to.GOOD[self.place](self.till)


Cause = Callable[[Case], Awaitable[Answer]]
CAUSES: dict[type, Cause] = {}


def causes(error: type) -> Callable[[Cause], Cause]:
    """Declare what causes an error. It may depend on the place."""

    def declare(cause: Cause) -> Cause:
        CAUSES[error] = cause
        return cause

    return declare


@causes(InvalidApiVersion)
async def of_another_version(case: Case) -> Answer:
    return await case.ask(case.request.having(X_Service_Api_Version="2"))


@causes(AppNotFound)
async def of_an_unknown_app(case: Case) -> Answer:
    path = case.request.path.replace("/default/", "/none/")
    return await case.ask(replace(case.request, path=path).having(X_Service_App_Id="none"))


@causes(ConfigInvalid)
async def without_the_config_of_its_area(case: Case) -> Answer:
    """Or, of an endpoint that has none, without a key that the app's authentication needs."""
    group = case.row.area.group
    if case.place in WEBHOOKS:
        async with case.till.with_broken_config(case.place[1].split("/")[3]):
            return await case.ask()
    if ConfigInvalid in case.row.errors:
        if case.row.exists is not None:  # Without any config, there is no such endpoint.
            return await case.ask(product_id="unknown")
        async with case.till.without_config(_CONFIGS[group]):
            return await case.ask()
    auth = {"server_keys": [{"kid": "development", "alg": "EdDSA"}]} if case.of_server else {"require_sign": True}
    async with case.till.with_config("auth", **auth):
        return await case.ask()


@causes(AuthFailed)
async def with_a_wrong_proof_of_the_caller(case: Case) -> Answer:
    if case.of_server:
        return await case.ask(case.request.having(X_Service_Auth_Token="wrong"))
    signing = {"require_sign": True, "sign_keys": [{"id": "one", "key": "a key of the app"}]}
    async with case.till.with_config("auth", **signing):
        return await case.ask(case.request.having(X_Service_Sign="wrong"))


@causes(PermissionDenied)
async def with_a_token_of_another_scope(case: Case) -> Answer:
    return await case.ask(replace(case.request, headers=token(scope="leaderboards")))


@causes(UserNotFound)
async def of_an_unknown_user(case: Case) -> Answer:
    return await case.ask(replace(case.request, path=case.request.path.replace(case.request.uid, new_id())))


@causes(InvalidSession)
async def with_an_ended_session(case: Case) -> Answer:
    return await case.ask(case.request.having(X_Service_Session_Token="st_ended"))


@causes(DeactivationPending)
async def of_a_frozen_user(case: Case) -> Answer:
    services, request = case.till.server.services, await case.new()
    async with services.database.transaction() as conn:
        freeze = "update users set status = 'frozen', freeze_time = now(), close_time = now() where uid = $1"
        await conn.execute(freeze, request.uid)
        await sessions.reread(conn, "default", request.uid, cache=services.sessions)
    return await case.ask(request)


@causes(InvalidParameter)
async def with_a_wrong_field(case: Case) -> Answer:
    """Return the answer to a wrong value of the last field. Each other field is refused by its name.

    A request without fields has an encoded body.
    """
    body = case.row.inputs.body
    if not isinstance(case.request.body, dict) or body is None:
        return await case.ask(case.request.having(Content_Encoding="gzip"))
    for name in body.fields:
        answer = await case.ask(**{name: ["wrong"]})
        assert answer[0] == 400, (name, answer)
        assert name in answer[1]["error"]["message"]
    return answer


@causes(TooLarge)
async def with_a_large_body(case: Case) -> Answer:
    return await case.ask(replace(case.request, body=b" " * 1_000_000))


_CONFIGS = {"assets": "share_groups", "cards": "cardpay", "walletpay": "walletpay", "withdrawals": "payouts"}
"""The kind of config that each area needs."""
_TABLES = (
    "assets", "share_groups", "card_payments", "card_customers", "card_subscriptions", "wallet_orders",
    "wallet_subscriptions", "withdrawals", "webhooks",
)  # fmt: skip


@causes(DatabaseError)
async def while_tables_are_missing(case: Case) -> Answer:
    await case.till.execute("".join(f"alter table {table} rename to {table}_away;" for table in _TABLES))
    try:
        return await case.ask()
    finally:
        await case.till.execute("".join(f"alter table {table}_away rename to {table};" for table in _TABLES))


async def _with_a_used_key(case: Case, change: str) -> Request:
    """Send a request with a key, change what is stored under the key, and return the request."""
    request = (await case.new()).having(Idempotency_Key=uuid4().hex)
    status, answer = await case.ask(request)
    assert status == 200, answer
    await case.till.execute(f"update idempotency_keys set {change}")  # noqa: S608 - constants
    return request


@causes(KeyReused)
async def with_the_key_of_another_request(case: Case) -> Answer:
    request = await _with_a_used_key(case, "app_id = app_id")
    return await case.ask(request.another)


@causes(RequestRunning)
async def while_an_earlier_call_runs(case: Case) -> Answer:
    request = await _with_a_used_key(case, "answered_at = null, status = null, headers = null")
    return await case.ask(request)


@causes(AnswerNotKept)
async def after_a_response_that_was_too_large_to_keep(case: Case) -> Answer:
    request = await _with_a_used_key(case, "too_large = true, body = null")
    return await case.ask(request)


@causes(RateLimited)
async def more_often_than_allowed(case: Case) -> Answer:
    limit = case.row.limit
    rate = "server" if case.of_server else "share_codes" if limit is None else limit.rate
    request = await case.new()
    if rate == "share_codes":
        request = request.another
    async with case.till.with_config("limits", rates={rate: {"count": 1, "per_s": 3600}}):
        for _ in range(3):
            answer = await case.ask(request)
        return answer


@causes(VendorError)
@causes(BackendUnavailable)
async def while_the_platform_fails(case: Case) -> Answer:
    async with case.till.with_platforms(key_of(fault="server_error", retry_after_s=0.01)):
        return await case.ask()
