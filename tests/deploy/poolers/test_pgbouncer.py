"""A server whose requests reach PostgreSQL through PgBouncer in transaction mode works as one without a pooler."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from app.settings import Settings
from storage.configs.kinds.products import PRODUCTS
from storage.operators.audit import COMMAND
from storage.postgres.database import Database, Locked, open_database
from streams.wire.errors import DatabaseError
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.resumed import resume
from tests.app.callers import ask, working
from tests.app.leaderboards.boards import Boards
from tests.app.mail.hub import Hub
from tests.app.payments.wallet.wallets import wallet_at
from tests.app.withdrawals.payer import Payer
from tests.deploy.commands import command
from tests.deploy.serving import server_env
from tests.peers.sse_client import all_events, events, named
from tests.peers.vendor import Vendor, running_vendor
from tests.running.another_server import another_server
from tests.running.poolers import NEEDS_PGBOUNCER, Pooler, address_of, pooler_of_all, running_pgbouncer
from tests.running.servers import Databases, Server, Stores, new_server
from tests.waiting import until
from vendors.sandbox.server import Running, listening

pytestmark = NEEDS_PGBOUNCER


@dataclass(frozen=True)
class Pooled:
    """Two processes of a deployment behind a pooler. The jobs of the first are run."""

    first: Server
    second: Server
    sandbox: Running
    vendor: Vendor

    async def put(self, kind: str, name: str, **value: Any) -> None:
        await self.first.services.configs.put("default", kind, name, value, author="tests", origin=COMMAND)


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pooled]:
    with pooler_of_all(databases.stores.database_url):
        async with (
            listening() as sandbox,
            running_vendor() as vendor,
            new_server(
                databases, tmp_path_factory.mktemp("data"), sandbox_url=sandbox.url, inbox_url=sandbox.inbox_url
            ) as first,
            another_server(first.services.settings) as second,
            working(first.services),
        ):
            yield Pooled(first, second, sandbox, vendor)


async def test_an_answer_is_resumed_in_another_process_and_is_in_the_history(testbed: Pooled) -> None:
    account = {"platform": "vendor_b_llm", "base_url": testbed.vendor.url, "api_key": "sk-test"}
    await testbed.put("vendor_accounts", "story", **account)
    await testbed.put("conversation", "story", chat={"account": "story", "model": "slow:Once upon a time"})
    talk = Talk(testbed.first, *await testbed.first.login())
    async with talk.say("Tell me", "story") as response:
        talk.remember(response)
        stream_id = response.headers["X-Service-Stream-Id"]
        first = await anext(events(response))
    elsewhere = Talk(testbed.second, talk.uid, talk.token, talk.conversation_id)
    async with resume(elsewhere, stream_id, first.id) as response:
        testbed.vendor.release.set()
        rest = await all_events(response)
    assert rest[-1].name == "end"
    assert "".join(chunk["text"] for chunk in named(rest, "assistant_output_chunk")) == "Once upon a time"
    [record] = (await elsewhere.history())["conversation_records"]
    [asked, answered] = [message["content"][0]["text"] for message in record["content"]]
    assert (asked, answered, record["status"]) == ("Tell me", "Once upon a time", "complete")


async def test_an_order_is_paid_once_and_its_asset_is_granted(testbed: Pooled) -> None:
    async with wallet_at(testbed.first, testbed.sandbox) as wallet:
        order = await wallet.order()
        await wallet.approve(order["approve_link_href"])
        paid = {"Idempotency-Key": "capture-1"}
        answers = [await wallet.capture(order["id"], **paid) for _ in range(2)]
        assert answers[0] == answers[1]
        assert answers[0][1]["walletpay_order"]["status"] == "COMPLETED"
        assert (await wallet.assets())["coins"]["quantity"] == 100
        assert len(await wallet.entries()) == 1


async def test_a_withdrawal_is_paid_by_the_worker(testbed: Pooled) -> None:
    payer = Payer(testbed.first, testbed.sandbox.url)
    await payer.configure()
    uid = await payer.user()
    status, reply = await payer.withdraw(uid)
    assert status == 200, reply

    async def paid() -> bool:
        await payer.check()
        return await payer.status(uid) == "WITHDRAW_SUCCESS"

    await until(paid)
    assert await payer.entries(uid) == ["reserve", "pay"]


async def test_an_email_is_sent_by_the_worker(testbed: Pooled) -> None:
    hub = Hub(testbed.first)
    await hub.strategy()
    person = await hub.person()
    status, reply = await hub.send(person, variables={"name": "Ada"})
    assert status == 200, reply
    await until(lambda: hub.mails(person.email))


async def test_a_board_ranks_users(testbed: Pooled) -> None:
    boards = Boards(testbed.first)
    await boards.configure()
    first, second = await boards.users(2)
    await boards.put(first, 10)
    await boards.put(second, 20)
    assert await boards.ranked(first) == [second, first]


async def test_another_process_notices_a_new_config_and_a_logout_within_a_second(testbed: Pooled) -> None:
    await testbed.put("products", "noticed", type="consumable", asset="coins", quantity=1)
    configs = testbed.second.services.configs
    await until(lambda: configs.exists(PRODUCTS, "default", "noticed"), within_s=1)
    _, session = await testbed.first.login()
    headers = {"X-Service-Session-Token": session}
    assert (await ask(testbed.second, "GET", "/bp/user/me", headers=headers))[0] == 200
    assert (await ask(testbed.first, "POST", "/bp/user/logout", headers=headers))[0] == 200

    async def refused() -> bool:
        return (await ask(testbed.second, "GET", "/bp/user/me", headers=headers))[0] != 200

    await until(refused, within_s=1)


@pytest.fixture
def pooler(stores: Stores) -> Iterator[Pooler]:
    with running_pgbouncer(address_of(stores.database_url)) as running:
        yield running


async def test_a_limit_on_waiting_for_locks_holds_behind_a_pooler(pooler: Pooler, database_url: str) -> None:
    url = pooler.url(database_url)
    async with (
        open_database(url, pooled=True) as database,
        open_database(url, pooled=True, lock_timeout_s=0.1) as limited,
        database.transaction() as conn,
    ):
        await conn.execute("lock table processes in access exclusive mode")
        with pytest.raises(Locked):
            async with limited.connection() as other:
                await other.fetchval("select count(*) from processes")


async def test_a_process_behind_a_pooler_without_a_direct_url_says_what_to_set(
    pooler: Pooler, settings: Settings
) -> None:
    env = server_env(settings, DATABASE_URL=pooler.url(settings.database_url), DATABASE_DIRECT_URL="")
    async with command("app", "worker", **env) as process:
        assert await process.end() != 0
    cause = "it is the URL of a pooler, so set DATABASE_DIRECT_URL to the URL of PostgreSQL itself"
    assert process.lines == [f"parley: database: DATABASE_URL cannot be used: {cause}"]


async def test_an_option_that_a_pooler_refuses_is_named(pooler: Pooler, database_url: str) -> None:
    with pytest.raises(DatabaseError) as raised:
        async with open_database(f"{pooler.url(database_url)}&statement_timeout=5s", pooled=True):
            pass
    assert raised.value.what == "DATABASE_URL cannot be used: unsupported startup parameter: statement_timeout"


async def test_a_statement_that_a_pooler_sends_to_another_session_names_the_cause(
    pooler: Pooler, database_url: str
) -> None:
    async def statement_of_another_session(database: Database) -> None:
        async with database.connection() as first, database.connection() as second:
            await first.fetchval("select $1::int", 1)
            async with second.transaction():
                await second.execute("select 1")  # PgBouncer reuses the session that was used last.
                await first.fetchval("select $1::int", 1)

    async with open_database(pooler.url(database_url)) as database:
        with pytest.raises(DatabaseError, match="DATABASE_DIRECT_URL"):
            await statement_of_another_session(database)
    async with open_database(pooler.url(database_url), pooled=True) as database:
        await statement_of_another_session(database)


async def test_migrations_use_the_direct_url(pooler: Pooler, settings: Settings) -> None:
    env = {**server_env(settings), "DATABASE_URL": "postgresql://127.0.0.1:1/parley"}
    env["DATABASE_DIRECT_URL"] = settings.direct_url
    async with command("app", "migrate", **env) as process:
        assert await process.end() == 0
    assert process.lines == ["nothing to apply"]
