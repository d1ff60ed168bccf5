"""What causes the errors that many endpoints of money have, and the cases of the tests."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from app.http.errors import DeactivationPending
from app.http.paths import is_server_path
from app.http.rows.endpoint import Endpoint
from app.http.rows.webhooks import WebhookUnverified
from app.routes import ASSET_ROUTES, CARD_ROUTES, WALLET_ROUTES, WEBHOOK_ROUTES, WITHDRAWAL_ROUTES
from storage.accounts import sessions
from storage.errors import AnswerNotKept, KeyReused, RequestRunning
from streams.wire.errors import (
    AppNotFound,
    BackendUnavailable,
    ConfigInvalid,
    DatabaseError,
    DatabaseUnavailable,
    InvalidParameter,
    RateLimited,
    Unavailable,
    ValkeyError,
    ValkeyUnavailable,
)
from tests.app.http.rows.listed_errors import ErrorTable, stored_as, without_a_key_of_auth, without_tables
from tests.app.money import good_requests as to
from tests.app.money.till import Answer, Place, Request, Till
from tests.running.servers import Server
from vendors.errors import VendorError
from vendors.sandbox.faults import key_of

MONEY_WEBHOOK_ROUTES = [
    row for row in WEBHOOK_ROUTES if row.path.split("/")[3] in {"cardpay", "walletpay", "payouts"}
]
CARD_WEBHOOK = ("POST", "/bp/webhook/cardpay/{app_id}/{config}")
IMPOSSIBLE = {(CARD_WEBHOOK, WebhookUnverified): "the signature needs no call"}
"""Errors that a row lists because its kind of rows does."""
TABLE = ErrorTable(
    (*ASSET_ROUTES, *CARD_ROUTES, *WALLET_ROUTES, *WITHDRAWAL_ROUTES, *MONEY_WEBHOOK_ROUTES),
    elsewhere={
        ValkeyError: "none of these endpoints reports it, as `test_money_outages.py` shows",
        ValkeyUnavailable: "the same",
        DatabaseUnavailable: "`test_money_outages.py` stops the database",
        Unavailable: "`test_single_use_tokens.py` stops Valkey",
    },
    impossible=IMPOSSIBLE,
)
ROWS = TABLE.rows
WEBHOOKS = frozenset((row.method, row.path) for row in MONEY_WEBHOOK_ROUTES)


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
    def server(self) -> Server:
        return self.till.server

    @property
    def path(self) -> str:
        return self.place[1]

    async def ask(self, *, uid: str = "", data: bytes | None = None, **headers: str) -> Answer:
        request = self.request.having(**headers)
        if uid:
            request = replace(request, path=request.path.replace(request.uid, uid))
        return await self.till.ask(request if data is None else replace(request, body=data))

    async def send(self, request: Request | None = None, **changes: Any) -> Answer:
        """Send the request, or another one, with other fields of the body."""
        request = request or self.request
        return await self.till.ask(replace(request, body={**request.body, **changes}) if changes else request)

    async def new(self) -> Request:
        return await to.GOOD[self.place](self.till)


@TABLE.causes(AppNotFound)
async def of_an_unknown_app(case: Case) -> Answer:
    path = case.request.path.replace("/default/", "/none/")
    return await case.send(replace(case.request, path=path).having(X_Service_App_Id="none"))


@TABLE.causes(ConfigInvalid)
async def without_the_config_of_its_area(case: Case) -> Answer:
    """Or, of an endpoint that has none, without a key that the app's authentication needs."""
    group = case.row.area.group
    if case.place in WEBHOOKS:
        async with stored_as(case.server, case.place[1].split("/")[3], "Default", {}):
            return await case.send()
    if ConfigInvalid in case.row.errors:
        if case.row.exists is not None:  # Without any config, there is no such endpoint.
            return await case.send(product_id="unknown")
        async with case.till.without_config(_CONFIGS[group]):
            return await case.send()
    return await without_a_key_of_auth(case)


@TABLE.causes(DeactivationPending)
async def of_a_frozen_user(case: Case) -> Answer:
    services, request = case.till.server.services, await case.new()
    async with services.database.transaction() as conn:
        freeze = "update users set status = 'frozen', freeze_time = now(), close_time = now() where uid = $1"
        await conn.execute(freeze, request.uid)
        await sessions.reread(conn, "default", request.uid, cache=services.sessions)
    return await case.send(request)


@TABLE.causes(InvalidParameter)
async def with_a_wrong_field(case: Case) -> Answer:
    """Return the answer to a wrong value of the last field. Each other field is refused by its name.

    A request without fields has an encoded body.
    """
    body = case.row.inputs.body
    if not isinstance(case.request.body, dict) or body is None:
        return await case.send(case.request.having(Content_Encoding="gzip"))
    for name in body.fields:
        answer = await case.send(**{name: ["wrong"]})
        assert answer[0] == 400, (name, answer)
        assert name in answer[1]["error"]["message"]
    return answer


_CONFIGS = {"assets": "share_groups", "cards": "cardpay", "walletpay": "walletpay", "withdrawals": "payouts"}
"""The kind of config that each area needs."""
_TABLES = (
    "assets", "share_groups", "card_payments", "card_customers", "card_subscriptions", "wallet_orders",
    "wallet_subscriptions", "withdrawals", "webhooks",
)  # fmt: skip


@TABLE.causes(DatabaseError)
async def while_tables_are_missing(case: Case) -> Answer:
    async with without_tables(case.server, *_TABLES):
        return await case.send()


async def _with_a_used_key(case: Case, change: str) -> Request:
    """Send a request with a key, change what is stored under the key, and return the request."""
    request = (await case.new()).having(Idempotency_Key=uuid4().hex)
    status, answer = await case.send(request)
    assert status == 200, answer
    await case.till.execute(f"update idempotency_keys set {change}")
    return request


@TABLE.causes(KeyReused)
async def with_the_key_of_another_request(case: Case) -> Answer:
    request = await _with_a_used_key(case, "app_id = app_id")
    return await case.send(request.another)


@TABLE.causes(RequestRunning)
async def while_an_earlier_call_runs(case: Case) -> Answer:
    request = await _with_a_used_key(case, "answered_at = null, status = null, headers = null")
    return await case.send(request)


@TABLE.causes(AnswerNotKept)
async def after_a_response_that_was_too_large_to_keep(case: Case) -> Answer:
    request = await _with_a_used_key(case, "too_large = true, body = null")
    return await case.send(request)


@TABLE.causes(RateLimited)
async def more_often_than_allowed(case: Case) -> Answer:
    limit = case.row.limit
    rate = "server" if is_server_path(case.path) else "share_codes" if limit is None else limit.rate
    request = await case.new()
    if rate == "share_codes":
        request = request.another
    async with case.till.with_config("limits", rates={rate: {"count": 1, "per_s": 3600}}):
        for _ in range(3):
            answer = await case.send(request)
        return answer


@TABLE.causes(VendorError, BackendUnavailable)
async def while_the_platform_fails(case: Case) -> Answer:
    async with case.till.with_platforms(key_of(fault="server_error", retry_after_s=0.01)):
        return await case.send()
