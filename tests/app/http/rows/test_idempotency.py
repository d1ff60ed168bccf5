"""A repeated request with the same `Idempotency-Key` has one effect, and gets the response to the first one."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, Self

import pytest
from aiohttp import ClientResponse

from app.http.callers.tokens import make_server_token
from app.http.openapi.document import openapi
from app.services import Services
from app.work.worker import run_jobs
from storage.jobs.jobs import RemoveExpired, enqueue
from storage.operators.audit import COMMAND
from streams.tasks import background
from streams.wire.codec import dumps, loads
from streams.wire.errors import ItemNotFound
from streams.wire.ids import is_id
from tests.app.shop import TABLE, Shop
from tests.running.servers import SERVER_KEY, Server, running_server
from tests.waiting import until

KEY = {"Idempotency-Key": "order-1"}
RUNNING = "invalid_operation: a request with this Idempotency-Key is still running"
OTHER = "invalid_operation: Idempotency-Key was used for another request"


@pytest.fixture
def services(shared_server: Server) -> Services:
    return shared_server.services


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
async def small(services: Services, listener: socket.socket, shop: Shop) -> AsyncIterator[Server]:
    async with services.database.connection() as conn:
        await conn.execute(TABLE)
    async with running_server(services, listener, shop.rows) as running:
        yield replace(running, url="http://{}:{}".format(*listener.getsockname()))


@dataclass(frozen=True)
class Answer:
    """A response that has been read."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @classmethod
    async def of(cls, response: ClientResponse) -> Self:
        return cls(response.status, response.headers, await response.read())

    @property
    def refusal(self) -> tuple[int, str]:
        return self.status, loads(self.body)["error"]["message"]

    @property
    def is_replay(self) -> bool:
        return self.headers.get("Idempotent-Replayed") == "true"


class Buyer:
    """A signed-in user."""

    def __init__(self, small: Server, uid: str, token: str) -> None:
        self.server = small
        self.uid = uid
        self.session = {"X-Service-Session-Token": token}

    async def ask(self, path: str = "/bp/order", *, method: str = "POST", **options: Any) -> Answer:
        """The response to a request with `KEY`, unless `options` have another one."""
        headers = {**self.session, **KEY, **options.pop("headers", {})}
        options = {"json": {"item": "tea"}} | options
        async with self.server.http.request(method, self.server.url + path, headers=headers, **options) as response:
            return await Answer.of(response)

    async def refusal(self, path: str = "/bp/order", **options: Any) -> tuple[int, str]:
        return (await self.ask(path, **options)).refusal


@pytest.fixture
async def buyer(small: Server) -> Buyer:
    return Buyer(small, *await small.login())


async def items(services: Services) -> list[str]:
    async with services.database.connection() as conn:
        return [row["item"] for row in await conn.fetch("select item from orders order by order_id")]


async def grow_old(services: Services, *, created_h: float = 0, claimed_h: float = 0) -> None:
    """Move the times of all stored keys into the past."""
    async with services.database.connection() as conn:
        await conn.execute(
            "update idempotency_keys set created_at = now() - make_interval(secs => $1), "
            "claimed_at = now() - make_interval(secs => $2)",
            created_h * 3600,
            claimed_h * 3600,
        )


async def test_repeat_has_no_effect_and_gets_the_stored_response(services: Services, buyer: Buyer) -> None:
    first = await buyer.ask(params={"count": 3})
    assert (first.status, first.headers["X-Order"], first.is_replay) == (200, "3", False)
    server = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    for path, options in (
        ("/bp/order", {"params": {"count": 3}}),
        ("/bp/order/", {"params": {"count": 3}, "json": None, "data": b'{"other": 1,\n "item" : "tea"}'}),
        (f"/bp/server/user/{buyer.uid}/order?count=3", {"headers": {"X-Service-Auth-Token": server}}),
    ):
        again = await buyer.ask(path, **options)
        assert (again.status, again.body, again.is_replay) == (200, first.body, True), path
        assert (again.headers["X-Order"], again.headers["Content-Type"]) == ("3", first.headers["Content-Type"])
        assert again.headers["X-Request-Id"] != first.headers["X-Request-Id"]
    assert await items(services) == ["tea"]


async def test_an_alias_shares_the_keys_of_its_endpoint(services: Services, buyer: Buyer) -> None:
    first = await buyer.ask()
    again = await buyer.ask("/bp/old_order")
    assert (again.status, again.body, again.is_replay) == (200, first.body, True)
    assert await items(services) == ["tea"]


async def test_empty_answer_is_replayed_and_an_anonymous_caller_is_its_address(
    services: Services, small: Server
) -> None:
    for replay in (False, True):
        async with small.http.post(f"{small.url}/bp/order/a", headers=KEY) as response:
            answer = await Answer.of(response)
            assert (answer.status, answer.body, answer.is_replay) == (200, b"", replay)
    async with small.http.post(f"{small.url}/bp/order/b", headers=KEY) as response:
        assert (await Answer.of(response)).refusal == (409, OTHER)
    assert await items(services) == ["a"]


async def test_key_belongs_to_one_caller_and_one_endpoint(services: Services, buyer: Buyer) -> None:
    other = Buyer(buyer.server, *await buyer.server.login())
    assert [(await caller.ask()).is_replay for caller in (buyer, other, buyer, other)] == [False, False, True, True]
    for path, options in (
        ("/bp/order", {"method": "DELETE", "json": None}),
        ("/bp/order/tea", {"json": None}),
        ("/bp/order", {"headers": {"Idempotency-Key": "order-2"}}),
    ):
        answer = await buyer.ask(path, **options)
        assert (answer.status, answer.is_replay) == (200, False)
    assert await items(services) == ["tea"] * 4


async def test_same_key_with_other_input_is_refused(services: Services, buyer: Buyer) -> None:
    assert (await buyer.ask()).status == 200
    assert await buyer.refusal(json={"item": "milk"}) == (409, OTHER)
    assert await buyer.refusal(params={"count": 2}) == (409, OTHER)
    assert (await buyer.ask()).is_replay
    assert await items(services) == ["tea"]


async def test_without_a_key_each_request_has_an_effect(services: Services, buyer: Buyer, small: Server) -> None:
    for _ in range(2):
        async with small.http.post(f"{small.url}/bp/order", headers=buyer.session, json={}) as response:
            assert (response.status, "Idempotent-Replayed" in response.headers) == (200, False)
    assert await items(services) == ["", ""]


@pytest.mark.parametrize("key", ["", "x" * 256, "two words", "é"])
async def test_malformed_keys_are_refused(services: Services, buyer: Buyer, key: str) -> None:
    message = "invalid_parameter: Idempotency-Key must be 1 to 255 visible ASCII characters"
    assert await buyer.refusal(headers={"Idempotency-Key": key}) == (400, message)
    assert await items(services) == []
    assert (await buyer.ask(headers={"Idempotency-Key": "~" * 255})).status == 200


async def test_repeats_of_a_running_request_are_retryable(services: Services, buyer: Buyer, shop: Shop) -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def wait(*_: Any) -> None:
        entered.set()
        await go_on.wait()

    for phase in ("before", "inside"):
        setattr(shop, phase, wait)
        async with background(buyer.ask(headers={"Idempotency-Key": phase})) as first:
            await entered.wait()
            again = await buyer.ask(headers={"Idempotency-Key": phase})
            assert again.refusal == (409, RUNNING)
            assert int(again.headers["Retry-After"]) >= 1
            go_on.set()
            answer = (await first).body
        again = await buyer.ask(headers={"Idempotency-Key": phase})
        assert (again.body, again.is_replay) == (answer, True)
        entered.clear()
        go_on.clear()
    assert await items(services) == ["tea", "tea"]


async def test_simultaneous_requests_have_one_effect(services: Services, buyer: Buyer, shop: Shop) -> None:
    for number in range(5):
        key = {"Idempotency-Key": f"race-{number}"}
        answers = await asyncio.gather(*(buyer.ask(headers=key) for _ in range(8)))
        assert {answer.status for answer in answers} <= {200, 409}
        good = [answer for answer in answers if answer.status == 200]
        assert sum(not answer.is_replay for answer in good) == 1
        assert len({answer.body for answer in good}) == 1
        assert len(await items(services)) == len(shop.operation_ids) == number + 1


@pytest.mark.parametrize("phase", ["before", "inside"])
async def test_failed_request_has_no_effect_and_frees_its_key(
    services: Services, buyer: Buyer, shop: Shop, phase: str
) -> None:
    async def fail(*_: Any) -> None:
        setattr(shop, phase, type(shop)().before)
        raise ItemNotFound("no tea is left")

    setattr(shop, phase, fail)
    assert await buyer.refusal() == (404, "item_not_found: no tea is left")
    assert await items(services) == []
    assert not (await buyer.ask()).is_replay
    assert (await buyer.ask()).is_replay
    assert await items(services) == ["tea"]
    first, second = shop.operation_ids
    assert first == second, "the repeat finds what the failed call has done elsewhere"


async def test_key_of_a_failed_request_can_be_used_for_another(
    services: Services, buyer: Buyer, shop: Shop
) -> None:
    async def fail(*_: Any) -> None:
        raise ItemNotFound("no tea is left")

    usual, shop.before = shop.before, fail
    assert (await buyer.ask()).status == 404
    shop.before = usual
    assert (await buyer.ask(json={"item": "milk"})).status == 200
    assert await buyer.refusal() == (409, OTHER)
    assert await items(services) == ["milk"]
    assert len(set(shop.operation_ids)) == 2


async def test_repeat_has_its_operation_id_also_after_another_request_has_failed_under_the_key(
    services: Services, buyer: Buyer, shop: Shop
) -> None:
    async def fail(*_: Any) -> None:
        raise ItemNotFound("no tea is left")

    usual, shop.before = shop.before, fail
    for item in ("tea", "milk", "tea", "milk"):
        assert (await buyer.ask(json={"item": item})).status == 404
    shop.before = usual
    assert (await buyer.ask()).status == 200
    tea, milk, *later = shop.operation_ids
    assert tea != milk
    assert later == [tea, milk, tea]
    assert all(map(is_id, shop.operation_ids))
    assert [operation_id[12] for operation_id in shop.operation_ids] == ["7"] * 5


async def test_error_after_the_commit_does_not_repeat_the_effect(
    services: Services, buyer: Buyer, shop: Shop
) -> None:
    async def fail() -> None:
        raise ItemNotFound("the file is gone")

    shop.after = fail
    assert (await buyer.ask()).status == 404
    assert (await buyer.ask()).is_replay
    assert await items(services) == ["tea"]


async def test_connection_to_postgresql_that_is_lost_in_the_transaction_frees_the_key(
    services: Services, buyer: Buyer, shop: Shop
) -> None:
    async def cut(conn: Any) -> None:
        shop.inside = type(shop)().inside
        await conn.execute("select pg_terminate_backend(pg_backend_pid())")

    shop.inside = cut
    lost = await buyer.ask()
    assert (lost.status, loads(lost.body)["error"]["error_type"]) == (503, "database")
    assert await items(services) == []
    assert not (await buyer.ask()).is_replay
    assert await items(services) == ["tea"]


async def test_call_that_hangs_loses_its_key_to_a_repeat_and_its_effect_is_rolled_back(
    services: Services, buyer: Buyer, shop: Shop
) -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def hang(*_: Any) -> None:
        shop.inside = type(shop)().inside
        entered.set()
        await go_on.wait()

    shop.inside = hang
    async with background(buyer.ask()) as first:
        await entered.wait()
        await grow_old(services, claimed_h=1)
        assert await buyer.refusal(json={"item": "milk"}) == (409, OTHER)
        second = await buyer.ask()
        assert (second.status, second.is_replay) == (200, False)
        go_on.set()
        assert (await first).refusal == (409, RUNNING)
    assert (await buyer.ask()).is_replay
    assert await items(services) == ["tea"]
    assert len(shop.operation_ids) == 2
    assert len(set(shop.operation_ids)) == 1


async def test_response_that_is_too_large_to_keep_is_sent_once_and_never_repeated(
    services: Services, buyer: Buyer
) -> None:
    await services.configs.put(
        "default", "limits", "default", {"body_bytes": 4 << 20}, author="tests", origin=COMMAND
    )
    large = dumps({"item": "x" * (1 << 20)})
    assert (await buyer.ask(json=None, data=BytesIO(large))).status == 200
    assert await buyer.refusal(json=None, data=BytesIO(large)) == (
        409,
        "invalid_operation: the request with this Idempotency-Key has succeeded, but its response was not kept",
    )
    assert len(await items(services)) == 1


async def test_replays_do_not_count_and_refused_calls_store_no_key(services: Services, buyer: Buyer) -> None:
    rates = {"rates": {"server": {"count": 1, "per_s": 3600}}}
    await services.configs.put("default", "limits", "default", rates, author="tests", origin=COMMAND)
    answers = [await buyer.ask() for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert {answer.headers["RateLimit-Policy"] for answer in answers} == {'"server";q=1;w=3600'}
    assert all(answer.headers["RateLimit"].startswith('"server";r=0;') for answer in answers)
    assert (await buyer.ask(headers={"Idempotency-Key": "order-2"})).status == 429
    async with services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from idempotency_keys") == 1


@pytest.mark.parametrize("path", ["/bp/begin_nothing", "/bp/answer_nothing"])
async def test_handler_that_stores_no_answer_fails_and_has_no_effect(
    services: Services, buyer: Buyer, path: str
) -> None:
    assert await buyer.refusal(path) == (500, "internal: the server failed")
    assert await items(services) == []


async def test_keys_are_kept_for_48_hours(services: Services, buyer: Buyer) -> None:
    async def none_left() -> bool:
        async with services.database.connection() as conn:
            return not await conn.fetchval("select 1 from procrastinate_jobs")

    await buyer.ask()
    for age, replay in ((47.9, True), (48.1, False)):
        await grow_old(services, created_h=age)
        async with services.database.transaction() as conn:
            await enqueue(conn, RemoveExpired())
        async with background(run_jobs(services, scheduled=False, poll_s=0.05)):
            await until(none_left)
        assert (await buyer.ask()).is_replay == replay, age


def test_reference_names_the_header_and_its_errors() -> None:
    operation = openapi(Shop().rows, public_url="https://parley.example")["paths"]["/bp/order"]["post"]
    [header] = [parameter for parameter in operation["parameters"] if parameter.get("name") == "Idempotency-Key"]
    assert header["in"] == "header"
    assert "48 hours" in header["description"]
    errors = operation["responses"]["409"]["description"]
    for meaning in ("is still running", "was used for another request", "its response was not kept"):
        assert meaning in errors
    assert "Retry-After" in operation["responses"]["409"]["headers"]
