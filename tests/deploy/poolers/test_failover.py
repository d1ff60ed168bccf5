"""After the primary of PostgreSQL is lost, servers use the standby, and nothing that was confirmed is lost."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from app.services import open_services
from deploy.stores import Stores
from storage.assets.differences import find_differences
from storage.operators.audit import COMMAND
from streams.tasks import background
from tests.app.ai.conftest import Talk
from tests.app.callers import working
from tests.app.mail.hub import Hub
from tests.app.operators import Operator
from tests.app.payments.wallet.wallets import PRODUCTS, Wallet, another, wallet_at
from tests.peers.sse_client import all_events
from tests.peers.vendor import running_vendor
from tests.running.another_server import another_server
from tests.running.clusters import Cluster, replicated, running_primary
from tests.running.poolers import NEEDS_PGBOUNCER, Pooler, running_pgbouncer
from tests.running.servers import (
    Server,
    listening_socket,
    open_databases,
    running_server,
    settings_of,
)
from tests.waiting import until
from vendors.sandbox.server import listening

pytestmark = NEEDS_PGBOUNCER

HEALED_S = 20
"""Far more than it takes, which the test prints, because the machine may be busy."""
_NAME = "parley"
_READS = "reads"
"""The name of connections to the standby for lists. Others ask it in passing whether it accepts writes."""
_MUCH = {"count": 100_000, "per_s": 1}
_BUYERS = _TALKERS = 2


@dataclass
class Site:
    """Servers of a cluster: one that reaches it through PgBouncer, and one whose URL names both nodes."""

    cluster: Cluster
    pooler: Pooler
    wallet: Wallet
    servers: tuple[Server, ...]

    async def fail_over(self) -> None:
        await self.cluster.fail_over()
        self.pooler.lead_to(self.cluster.standby.address)


@pytest.fixture
async def site(stores: Stores, tmp_path: Path) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        primary, processes = await enter(running_primary())
        async with open_databases(Stores(primary.url(), stores.redis_url)) as databases:
            await databases.admin.execute(f"create database {_NAME} template parley_seeded strategy file_copy")
        cluster = await enter(replicated(primary, processes))
        pooler = stack.enter_context(running_pgbouncer(primary.address))
        sandbox, vendor = await enter(listening()), await enter(running_vendor())
        listener = stack.enter_context(listening_socket())
        urls = {
            "database_url": pooler.url(primary.url(_NAME)),
            "database_direct_url": cluster.url(_NAME),
            "database_replica_url": f"{cluster.standby.url(_NAME)}&application_name={_READS}",
        }
        more = {"sandbox_url": sandbox.url, "inbox_url": sandbox.inbox_url}
        settings = replace(settings_of(stores, "", listener.getsockname()[1], tmp_path, **more), **urls)
        server = await enter(running_server(await enter(open_services(settings)), listener))
        account = {"platform": "vendor_b_llm", "base_url": vendor.url, "api_key": "sk-test"}
        for kind, name, value in (
            ("vendor_accounts", "one", account),
            ("conversation", "one", {"chat": {"account": "one", "model": "say:Once upon a time"}}),
            ("limits", "default", {"rates": dict.fromkeys(("wallets", "payment_reads", "conversation"), _MUCH)}),
        ):
            await server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)
        wallet = await enter(wallet_at(server, sandbox))
        direct = {"database_url": cluster.url(_NAME), "database_direct_url": None}
        other = await enter(another_server(server.services.settings, **direct))
        await enter(working(server.services))
        yield Site(cluster, pooler, wallet, (server, other))


@dataclass
class Client:
    """Repeats a request until it succeeds, and then sends the next one."""

    act: Callable[[], Awaitable[Any]]
    confirmed: list[tuple[float, Any]] = field(default_factory=list)

    async def run(self) -> None:
        while True:
            self.confirmed.append((time.monotonic(), await self.act()))

    def since(self, moment: float) -> int:
        return sum(at > moment for at, _ in self.confirmed)


async def repeated(wallet: Wallet, path: str, body: dict[str, Any]) -> Any:
    """Repeat a request until it is answered.

    The key of a failed call stays in use for a minute if PostgreSQL was lost before the call could free it.
    So the next request has another key, and the order alone forbids that its payment has an effect twice.
    """
    key = uuid4().hex
    while True:
        status, answer = await wallet.post(path, body, **{"Idempotency-Key": key})
        if status == 200:
            return answer["walletpay_order"]
        assert status in {409, 503}, answer
        key = key if status == 503 else uuid4().hex
        await asyncio.sleep(0.05)


async def buy(wallet: Wallet) -> str:
    """Buy coins. Return the id of the order once its payment is confirmed."""
    order = await repeated(wallet, "walletpay/create", {"product_id": "coins"})
    await wallet.approve(order["approve_link_href"])
    paid = await repeated(wallet, "walletpay/capture", {"order_id": order["id"]})
    assert paid["status"] == "COMPLETED"
    return str(order["id"])


async def converse(talk: Talk) -> int:
    """Return the id of the record of a turn whose end was confirmed."""
    while True:
        async with talk.say("Tell me", "one") as response:
            if response.status == 200:
                talk.remember(response)
                if (last := (await all_events(response))[-1]).name == "end":
                    return int(last.content["record_id"])
            else:
                assert response.status in {503, 409}, await response.text()
        await asyncio.sleep(0.05)


async def read_from_the_standby(site: Site) -> None:
    """Read a list for operators from the standby, but from the primary while the standby does not follow it."""
    standby, operator = site.cluster.standby, Operator(site.servers[0])
    readers = f"select count(*) from pg_stat_activity where application_name = '{_READS}'"

    async def newest_change() -> str:
        reply = await operator("GET", "audit?size=1")
        assert reply.status == 200, reply.body
        return str(reply.body["changes"][0]["name"])

    assert (await operator.put("configs/default/products/seen", PRODUCTS["coins"])).status == 200
    assert await standby.execute(readers) == 0
    assert await newest_change() == "seen"
    assert await standby.execute(readers) == 1
    await standby.execute("select pg_wal_replay_pause()")
    try:
        assert (await operator.put("configs/default/products/later", PRODUCTS["coins"])).status == 200
        with capture_logs() as lines:
            assert await newest_change() == "later"
        assert [line["event"] for line in lines if line["log_level"] == "warning"] == ["replica.skipped"]
    finally:
        await standby.execute("select pg_wal_replay_resume()")


async def reach_the_standby_by_mistake(site: Site) -> None:
    """Let PgBouncer lead to the standby for a while: it is read, but refuses writes."""

    async def answer() -> tuple[int, str]:
        status, body = await site.wallet.post("walletpay/create", {"product_id": "coins"})
        return status, body.get("error", {}).get("message", "")

    async def answers(expected: tuple[int, str]) -> bool:
        return await answer() == expected

    site.pooler.lead_to(site.cluster.standby.address)
    await until(lambda: answers((503, "database: the database is read-only")), within_s=HEALED_S)
    site.pooler.lead_to(site.cluster.primary.address)
    await until(lambda: answers((200, "")), within_s=HEALED_S)


async def test_nothing_confirmed_is_lost_and_nothing_is_granted_twice_after_a_failover(site: Site) -> None:
    await read_from_the_standby(site)
    await reach_the_standby_by_mistake(site)
    wallets, talks, clients = [], [], []
    for server in site.servers:
        for _ in range(_BUYERS):
            wallet = await another(site.wallet)
            wallet.server = server
            wallets.append(wallet)
            clients.append((server, Client(lambda wallet=wallet: buy(wallet))))
        for _ in range(_TALKERS):
            talk = Talk(server, *await server.login())
            talks.append(talk)
            clients.append((server, Client(lambda talk=talk: converse(talk))))
    async with AsyncExitStack() as stack:
        tasks = [await stack.enter_async_context(background(client.run())) for _, client in clients]

        async def all_confirmed(moment: float) -> bool:
            for task in tasks:
                if task.done():
                    task.result()
            return all(client.since(moment) >= 3 for _, client in clients)

        await until(lambda: all_confirmed(0))
        killed_at = time.monotonic()
        await site.fail_over()
        promoted_at = time.monotonic()
        await until(lambda: all_confirmed(promoted_at), within_s=HEALED_S)
    for name, server in zip(("PgBouncer", "both hosts"), site.servers, strict=True):
        own = [client for of, client in clients if of is server]
        healed_at = max(min(at for at, _ in client.confirmed if at > promoted_at) for client in own)
        print(f"{name}: promoted after {promoted_at - killed_at:.1f} s, then {healed_at - promoted_at:.1f} s")  # noqa: T201
    clients_of = [client for _, client in clients]
    buyers = [client for client in clients_of if isinstance(client.confirmed[0][1], str)]
    for wallet, client in zip(wallets, buyers, strict=True):
        orders = {order for _, order in client.confirmed}
        statement = "select receipt_id from asset_entries where uid = $1 and kind = 'grant'"
        granted = [row[0] for row in await wallet.rows(statement, wallet.uid)]
        assert len(granted) == len(set(granted))
        assert orders <= set(granted)
    for talk, client in zip(talks, [client for client in clients_of if client not in buyers], strict=True):
        await until(lambda talk=talk, client=client: stored(talk, client))
    assert [one async for one in find_differences(site.servers[0].services.database)] == []
    hub = Hub(site.servers[0])
    await hub.strategy()
    person = await hub.person()
    assert (await hub.send(person, variables={"name": "Ada"}))[0] == 200
    await until(lambda: hub.mails(person.email), within_s=HEALED_S)


async def stored(talk: Talk, client: Client) -> bool:
    """Return whether the answer of each confirmed turn is in the history."""
    statement = "select record_id, status from conversation_records where conversation_id = $1"
    async with talk.server.services.database.connection() as conn:
        records = {row["record_id"]: row["status"] for row in await conn.fetch(statement, talk.conversation_id)}
    return {records.get(number) for _, number in client.confirmed} == {"complete"}
