"""Many concurrent conversations with vendors that sometimes fail: each ends, and the server releases everything."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
from structlog import DropEvent
from structlog.testing import capture_logs

from app.commands.users import make_users
from app.settings import Settings
from bench.deployment import APP, RAISED_LIMITS, DeploymentSpec, make_app, strategies
from storage.operators.audit import COMMAND
from streams.tasks import background
from streams.wire.codec import loads
from streams.wire.errors import StoreError
from tests.app.ai.conftest import Talk
from tests.deploy.commands import command
from tests.peers.sse_client import all_events, named
from tests.running.servers import ADMIN_TOKEN, Server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import listening

FAILING = 0.05
ROUNDS = 3
SETTLED_S = 30
READABLE_S = 2
CONNECTIONS = 20
QUICK, SLOW = ("20x20", "10x20"), ("30x1000", "25x1000")
"""Strategies named by their answers: the number of deltas, and the milliseconds between them."""


@pytest.fixture
def keep_alive_s() -> float:
    """How long idle connections to vendors are kept, in seconds."""
    return 0.2


@pytest.fixture
def settings(settings: Settings, keep_alive_s: float) -> Settings:
    return replace(settings, vendor_idle_s=keep_alive_s)


async def converse_many(server: Server, users: list[str], streams: int, strategies: list[str]) -> Counter[str]:
    """Run `streams` streams, one at a time per user. Return how they ended."""
    ended: Counter[str] = Counter()
    left = iter(range(streams))

    async def one_user(token: str) -> None:
        talk = Talk(server, "", token)
        for _ in left:
            async with talk.say("Tell me a story", *strategies) as response:
                seen = await all_events(response)
            assert [event.id for event in seen if event.id] == list(range(1, seen[-1].id + 1))
            ended[seen[-1].name] += 1
            if seen[-1].name == "end":
                text = "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk"))
                assert seen[-1].content["digest"]["chars"] == len(text)

    await asyncio.gather(*(one_user(token) for token in users))
    return ended


async def _run(server: Server, *, at_once: int, streams: int) -> None:
    configs = server.services.configs
    await configs.put(
        "default",
        "limits",
        "default",
        {"rates": {"signup": {"count": 10**6, "per_s": 1}}},
        author="t",
        origin=COMMAND,
    )
    async with listening() as sandbox:
        for name, seed in (("first", 1), ("second", 2)):
            key = key_of(fault="cut_mid_stream", rate=0.05, seed=seed)
            account = {"platform": "vendor_b_llm", "base_url": f"{sandbox.url}/openai/v1", "api_key": key}
            await configs.put("default", "vendor_accounts", name, account, author="t", origin=COMMAND)
            chat = {"account": name, "model": "gpt-4o-mini"}
            await configs.put("default", "conversation", name, {"chat": chat}, author="t", origin=COMMAND)
        users = [(await server.login())[1] for _ in range(at_once)]
        await converse_many(server, users, at_once, ["first", "second"])  # Opens connections.
        before = psutil.Process().num_fds()
        ended = await converse_many(server, users, streams, ["first", "second"])
        assert ended.total() == streams
        assert set(ended) <= {"end", "error"}
        await server.services.supervisor.idle()
        # The idle connections are fewer than one for each stream.
        assert psutil.Process().num_fds() <= before + 2 * at_once
        assert all(entry.ended is not None for entry in sandbox.bill.since(0))
    async with server.services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from conversation_records where status = 'running'") == 0
    keys = await server.services.valkey.client.keys(f"{server.services.settings.redis_prefix}*turn*")
    assert keys == []


async def test_twenty_conversations_at_once_all_end(server: Server) -> None:
    await _run(server, at_once=20, streams=60)


@pytest.mark.soak
async def test_five_hundred_conversations_at_once_all_end(server: Server) -> None:
    await _run(server, at_once=int(os.environ.get("PARLEY_SOAK_STREAMS", "500")), streams=5_000)  # noqa: TID251


@dataclass(frozen=True)
class Held:
    """The resources that the server process holds."""

    actors: int
    tasks: int
    vendor_connections: int
    descriptors: int

    @classmethod
    def now(cls, server: Server, vendor_port: int) -> "Held":
        sockets = psutil.Process().net_connections(kind="tcp")
        vendor_connections = sum(bool(found.raddr) and found.raddr.port == vendor_port for found in sockets)
        actors = len(server.services.supervisor)
        return cls(actors, len(asyncio.all_tasks()), vendor_connections, psutil.Process().num_fds())


@dataclass
class LoadTest:
    """Many users of one server whose vendor sometimes fails. The users and the vendor are other processes."""

    server: Server
    vendor_port: int
    folder: Path
    max_concurrent: int = 0
    """The number of concurrent streams."""

    async def converse(self, *models: str, at_once: int, streams: int, over_s: float) -> dict:
        """Run a round and read all its streams to the end. Return the figures once the server has settled."""
        result = self.folder / "result.json"
        load = ("--at-once", str(at_once), "--streams", str(streams), "--over", f"{over_s}s", "--json", str(result))
        where = ("--url", self.server.url, "--token-file", str(self.folder / "users"))
        how = ("--strategy", ",".join(models), "--read-every", "1")
        async with command("bench.load", *where, *how, *load) as generator, background(self._watch()):
            async for _ in generator:
                pass
            assert await generator.process.wait() == 0, generator.lines
        await self.server.services.supervisor.idle()
        await until(lambda: self.held().vendor_connections == 0, within_s=SETTLED_S)
        return loads(result.read_bytes())

    async def _watch(self) -> None:
        while True:
            self.max_concurrent = max(self.max_concurrent, len(self.server.services.supervisor))
            await asyncio.sleep(0.02)

    def held(self) -> Held:
        return Held.now(self.server, self.vendor_port)


async def fill_pools(server: Server) -> None:
    """Open all connections of the stores' pools, because the number that a round needs varies."""
    async with AsyncExitStack() as stack:
        for _ in range(CONNECTIONS):
            await stack.enter_async_context(server.services.database.connection())
    async with asyncio.timeout(30):
        while True:
            with suppress(StoreError):  # Opening so many connections can time out on a busy machine.
                await asyncio.gather(*(server.services.valkey.client.ping() for _ in range(CONNECTIONS)))
                return


@asynccontextmanager
async def load_test(server: Server, folder: Path, *, users: int) -> AsyncIterator[LoadTest]:
    async with command("bench.upstream", "--failing", str(FAILING), "--seed", "1") as vendor:
        port = int(await vendor.until(""))
        await make_app(server.url, ADMIN_TOKEN)
        # Ended streams expire soon, so that a round does not count the logs of the previous one.
        limits = {**RAISED_LIMITS, "readable_s": READABLE_S}
        await server.services.configs.put(APP, "limits", "default", limits, author="t", origin=COMMAND)
        wanted = DeploymentSpec(frozenset(QUICK + SLOW))
        for key, value in strategies(wanted, f"http://127.0.0.1:{port}", "").items():
            kind, _, name = key.partition("/")
            await server.services.configs.put(APP, kind, name, value, author="t", origin=COMMAND)
        tokens = [token for _, token in await make_users(server.services, APP, users)]
        (folder / "users").write_text("\n".join(tokens))
        yield LoadTest(server, port, folder)


def errors_only(_, method: str, line: dict) -> dict:
    if method not in {"error", "exception", "critical"}:
        raise DropEvent
    return line


async def _rounds(
    server: Server, folder: Path, *models: str, at_once: int, streams: int, over_s: float = 0
) -> None:
    lost: list[dict] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    rss_bytes = []
    with capture_logs(processors=[errors_only]) as lines:
        async with load_test(server, folder, users=max(1, at_once // 4)) as load:
            await fill_pools(server)
            for number in range(ROUNDS):
                found = await load.converse(*models, at_once=at_once, streams=streams, over_s=over_s)
                assert found["faults"] == {}
                assert found["streams"] == found["read_in_full"] == streams
                assert found["ended"] + sum(found["errors"].values()) == streams
                assert set(found["errors"]) <= {"backend_unavailable", "all_strategies_failed"}
                rss_bytes.append(psutil.Process().memory_info().rss)
                if number == 0:
                    warm = load.held()
                else:
                    assert load.held() == warm
    assert load.max_concurrent >= at_once * 0.8
    assert (warm.actors, warm.vendor_connections) == (0, 0)
    assert (lines, lost) == ([], [])
    assert rss_bytes[-1] <= rss_bytes[0] * 1.1
    async with server.services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from conversation_records where status = 'running'") == 0


async def test_a_server_holds_nothing_after_many_streams(server: Server, tmp_path: Path) -> None:
    await _rounds(server, tmp_path, *QUICK, at_once=20, streams=40)


@pytest.mark.soak
@pytest.mark.parametrize("keep_alive_s", [2])
async def test_a_server_holds_nothing_after_two_thousand_streams_at_once(server: Server, tmp_path: Path) -> None:
    await _rounds(server, tmp_path, *SLOW, at_once=2_000, streams=4_000, over_s=30)
