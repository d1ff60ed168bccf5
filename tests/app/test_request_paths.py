"""How many files one reads to follow a request. `make paths` prints their names, in order."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace

import pytest
from aiohttp import ClientSession

from storage.operators.audit import COMMAND
from streams.tasks import background
from streams.wire.codec import dumps
from tests.app.callers import ask, work_off
from tests.app.leaderboards.boards import Boards
from tests.app.mail.hub import Hub
from tests.app.payments.wallet.wallets import WEBHOOK, wallet_at
from tests.peers.vendor import running_vendor
from tests.running.servers import Databases, Server, new_server
from tests.tracing import Trace, traced
from vendors.sandbox.payments.paypal.webhooks import signed
from vendors.sandbox.server import listening

Act = Callable[[Server], Awaitable[None]]
_WALLET_WEBHOOK = "/bp/webhook/walletpay/default/Default"


async def login(server: Server) -> AsyncIterator[Act]:
    async def act(server: Server) -> None:
        await server.login()

    yield act


async def conversation(server: Server) -> AsyncIterator[Act]:
    async with running_vendor() as vendor:
        put = server.services.configs.put
        for kind, value in (
            ("vendor_accounts", {"platform": "vendor_b_llm", "base_url": vendor.url, "api_key": "sk-test"}),
            ("conversation", {"chat": {"account": "traced", "model": "say:Hello"}}),
        ):
            await put("default", kind, "traced", value, author="test", origin=COMMAND)
        _, session = await server.login()
        params = {
            "strategies": ["traced"],
            "language_code": "en-US",
            "target_language_code": "en-US",
            "type": "text",
        }
        body = dumps({**params, "conversation_id": ""}) + b"Hi"

        async def act(server: Server) -> None:
            headers = {"X-Service-Session-Token": session}
            async with server.http.post(f"{server.url}/bp/ai/conversation", data=body, headers=headers) as response:
                assert "event: end" in await response.text()

        yield act


async def wallet_order(server: Server) -> AsyncIterator[Act]:
    async with listening() as sandbox, wallet_at(server, sandbox) as wallet:

        async def act(server: Server) -> None:
            await replace(wallet, server=server).order()

        yield act


async def wallet_webhook(server: Server) -> AsyncIterator[Act]:
    """The customer has paid an order, but does not return to the app."""
    async with listening() as sandbox, wallet_at(server, sandbox) as wallet:
        paid = []
        for _ in range(2):
            order = await wallet.order()
            await wallet.approve(order["approve_link_href"])
            await wallet.platform("POST", f"/v2/checkout/orders/{order['id']}/capture", {})
            paid.append(order["id"])
        await wallet.control("webhook", id=WEBHOOK, url=server.url + _WALLET_WEBHOOK)

        async def act(server: Server) -> None:
            order_id, before = paid.pop(), len(await wallet.entries())
            event = {"id": order_id, "event_type": "CHECKOUT.ORDER.APPROVED", "resource": {"id": order_id}}
            headers, body = signed(dumps(event), WEBHOOK, tls_url="https://127.0.0.1:1")
            assert (await ask(server, "POST", _WALLET_WEBHOOK, data=body, headers=dict(headers)))[0] == 200
            await work_off(server.services)
            assert len(await wallet.entries()) == before + 1

        yield act


async def board_upload(server: Server) -> AsyncIterator[Act]:
    boards = Boards(server)
    await boards.configure()
    uid, scores = await boards.user(), iter((5, 7))

    async def act(server: Server) -> None:
        boards.server = server
        assert (await boards.upload(uid, next(scores)))[0] == 200

    yield act


async def mail(server: Server) -> AsyncIterator[Act]:
    hub = Hub(server)
    await hub.limit()
    await hub.strategy()
    person = await hub.person()

    async def act(server: Server) -> None:
        assert (await replace(hub, server=server).send(person))[0] == 200
        await hub.work_off()
        assert set(await hub.rows("status", person.uid)) == {"sent"}

    yield act


@pytest.fixture
async def server(databases: Databases, tmp_path) -> AsyncIterator[Server]:
    async with (
        listening() as sandbox,
        new_server(databases, tmp_path, inbox_url=sandbox.inbox_url, sandbox_url=sandbox.url) as opened,
    ):
        yield opened


@pytest.mark.one_valkey  # A cluster needs modules of its own.
@pytest.mark.parametrize(
    ("request_", "files", "climbs"),
    [
        (login, 30, 0),
        (conversation, 55, 4),
        (wallet_order, 45, 0),
        (wallet_webhook, 48, 0),
        (board_upload, 30, 0),
        (mail, 45, 2),
    ],
)
async def test_a_request_is_followed_through_few_files(
    server: Server, request_: Callable[[Server], AsyncIterator[Act]], files: int, climbs: int
) -> None:
    """The second request is traced, so that no file is imported meanwhile."""
    async with aclosing(request_(server)) as acts:
        act = await anext(acts)
        await act(server)
        async with ClientSession() as http:
            with traced() as trace:
                await act(replace(server, http=http))
    sys.stdout.write("\n".join(described(request_.__name__, trace)))
    assert len(trace.own) <= files
    assert len(trace.climbs) <= climbs


@pytest.mark.one_valkey
async def test_what_others_ask_of_a_store_is_no_part_of_a_request(server: Server) -> None:
    ping = server.services.valkey.ping
    await ping()

    async def pings() -> None:
        for _ in range(3):
            await ping()

    async with background(pings()) as other:
        with traced() as trace:
            await other
    assert trace.files == []


def described(name: str, trace: Trace) -> Iterator[str]:
    own = trace.own
    yield f"\n{name}: {len(own)} files, and {len(trace.files) - len(own)} of the machinery of all requests (*)"
    yield from (f"  {file}{'' if file in own else ' *'}" for file in trace.files)
    yield from (f"  climbs from {lower} to {higher}" for lower, higher in trace.climbs)
    yield ""
