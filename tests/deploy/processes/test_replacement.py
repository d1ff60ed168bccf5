"""Processes that are replaced or stopped under load: every request is answered, every stream is whole."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from app.commands.users import make_users
from app.services import open_services
from app.settings import Settings
from bench.deployment import DeploymentSpec, strategies
from storage.operators.audit import COMMAND
from streams.tasks import background
from streams.wire.codec import dumps
from tests.deploy.callers import Caller
from tests.deploy.commands import Command, command, left_of
from tests.deploy.proxies.nginx import NGINX, Nginx, running_nginx
from tests.deploy.serving import serving
from tests.running.servers import Databases, listening_socket, settings_of
from tests.waiting import until

MODEL, LONG_MODEL = "20x50", "80x100"
"""Answers that take 1 s and 8 s."""
USERS = 200
READY_S = 120
DRAIN_S, SHORT_DRAIN_S = 30, 10
KEPT_S = 2
"""How long an idle connection is kept."""
SIGHUPS = int(os.environ.get("PARLEY_SOAK_SIGHUPS", "10"))  # noqa: TID251
STREAMS_PER_S = 20
CALLS_PER_S = 50

pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("replacement"),  # One worker starts the deployment that tests share.
]


@dataclass
class Load:
    """Requests at even rates, by turns over each of `ways`. What is not as it should be is kept in `faults`."""

    ways: list[tuple[str, ClientSession, str]]
    """Name, client and URL."""
    tokens: Iterator[str]
    begun: list[Caller] = field(default_factory=list)
    answered: int = 0
    faults: list[str] = field(default_factory=list)

    async def run(self, tasks: asyncio.TaskGroup, *, streams_per_s: float, calls_per_s: float) -> None:
        """Start requests in `tasks` until cancelled."""
        async with asyncio.TaskGroup() as kinds:
            kinds.create_task(self._evenly(tasks, self._stream, per_s=streams_per_s))
            kinds.create_task(self._evenly(tasks, self._call, per_s=calls_per_s))

    async def _evenly(self, tasks: asyncio.TaskGroup, ask: Any, *, per_s: float) -> None:
        due = time.monotonic()
        for way in cycle(self.ways):
            tasks.create_task(ask(*way))
            due += 1 / per_s
            await asyncio.sleep(due - time.monotonic())

    async def _call(self, way: str, http: ClientSession, url: str) -> None:
        headers = {"X-Service-Session-Token": next(self.tokens)}
        try:
            async with http.get(f"{url}/bp/user/me", headers=headers) as answer:
                await answer.read()
                self._note(way, "call", answer.status)
        except ClientError as error:
            self.faults.append(f"call {way}: {error!r}")

    async def _stream(self, way: str, http: ClientSession, url: str) -> None:
        caller = Caller(http, url, {"X-Service-Session-Token": next(self.tokens)})
        try:
            response = await caller.say("Tell me a story", MODEL)
        except ClientError as error:
            self.faults.append(f"stream {way}: {error!r}")
            return
        self._note(way, "stream", response.status)
        if response.status == 200:
            self.begun.append(caller)
            await caller.read(response)
            last = caller.seen[-1].name if caller.seen else None
            if caller.cut or last != "end":
                self.faults.append(f"stream {way}: cut after {len(caller.seen)} events, the last {last}")
        else:
            response.release()

    def _note(self, way: str, what: str, status: int) -> None:
        self.answered += 1
        if status != 200:
            self.faults.append(f"{what} {way}: {status}")


@dataclass
class Deployment:
    """The stores, the vendor, the nginx and the processes of a server. `tokens` are those of its users."""

    settings: Settings
    tokens: list[str]
    nginx: Nginx
    stack: AsyncExitStack
    """Ends what is running when the deployment ends."""
    parent: Command | None = None

    async def running(self) -> Command:
        """Return the parent of two processes that are ready. It is started unless it runs already."""
        if self.parent is None or self.parent.process.returncode is not None:
            started = serving(self.settings, PARLEY_DRAIN_TIMEOUT_S=str(DRAIN_S))
            self.parent = await self.stack.enter_async_context(started)
            for _ in range(2):
                await self.parent.event("process.ready")
        return self.parent

    @asynccontextmanager
    async def loaded(
        self, *, streams_per_s: float, calls_per_s: float, kept_s: int = KEPT_S
    ) -> AsyncIterator[tuple[Command, Load]]:
        """Put load on two processes: on fresh and on kept connections, directly and through nginx.

        At the end of the block no more requests begin, and those under way are waited for. `kept_s`: how long
        clients keep an idle connection.
        """
        parent = await self.running()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(background(_read(parent)))
            ways = []
            for name, url in (("direct", self.settings.public_url), ("nginx", self.nginx.url)):
                for kept in (False, True):
                    keep: dict[str, Any] = {"keepalive_timeout": kept_s} if kept else {"force_close": True}
                    connector = TCPConnector(limit=0, **keep)
                    client = ClientSession(connector=connector, timeout=ClientTimeout(total=90))
                    http = await stack.enter_async_context(client)
                    ways.append((f"{'kept' if kept else 'fresh'}, {name}", http, url))
            load = Load(ways, cycle(self.tokens))
            async with (
                asyncio.TaskGroup() as tasks,
                background(load.run(tasks, streams_per_s=streams_per_s, calls_per_s=calls_per_s)),
            ):
                await until(lambda: len(load.begun) > 2 * len(ways), within_s=READY_S)
                yield parent, load


@asynccontextmanager
async def new_deployment(databases: Databases, folder: Path, *, kept_s: int = KEPT_S) -> AsyncIterator[Deployment]:
    """`kept_s`: how long nginx keeps an idle connection."""
    async with AsyncExitStack() as stack:
        with listening_socket() as held:
            port = held.getsockname()[1]
        url = await stack.enter_async_context(databases.new(seeded=True))
        settings = settings_of(databases.stores, url, port, folder / "data")
        vendor = await stack.enter_async_context(command("bench.upstream"))
        vendor_url = f"http://127.0.0.1:{int(await vendor.until(''))}"
        async with open_services(settings) as services:
            tokens = [token for _, token in await make_users(services, "default", USERS)]
            for key, value in strategies(DeploymentSpec(frozenset({MODEL, LONG_MODEL})), vendor_url, "").items():
                kind, _, name = key.partition("/")
                await services.configs.put("default", kind, name, value, author="test", origin=COMMAND)
        nginx = stack.enter_context(running_nginx(folder, f"127.0.0.1:{port}", kept_s=kept_s))
        yield Deployment(settings, tokens, nginx, stack)


@pytest.fixture(scope="module")
async def deployment(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    """A deployment whose processes several tests use. Each test leaves two that are ready, or none."""
    async with new_deployment(databases, tmp_path_factory.mktemp("deployment")) as made:
        yield made


async def _read(parent: Command) -> None:
    async for _ in parent:
        pass


def count(parent: Command, event: str) -> int:
    return sum(f'"event":"{event}"' in line for line in parent.lines)


async def two_are_left(parent: Command) -> None:
    """Wait until those that were replaced have ended, and find that no more and no less than two stay."""
    await until(lambda: len(parent.descendants()) == 2, within_s=READY_S)
    assert count(parent, "process.started") == count(parent, "process.ready")
    await until(lambda: count(parent, "server.stopped") + 2 == count(parent, "process.ready"))


async def test_nothing_fails_while_processes_are_replaced_again_and_again(deployment: Deployment) -> None:
    async with deployment.loaded(streams_per_s=8, calls_per_s=40) as (parent, load):
        rounds, ready = count(parent, "processes.replacing") + 2, count(parent, "process.ready") + 4
        for _ in range(3):
            parent.process.send_signal(signal.SIGHUP)
            await until(lambda: count(parent, "process.started") > count(parent, "process.ready"), within_s=READY_S)
        await until(lambda: count(parent, "processes.replacing") == rounds, within_s=READY_S)
        await until(lambda: count(parent, "process.ready") == ready, within_s=READY_S)
        await two_are_left(parent)
        await until(lambda: load.answered > 200, within_s=READY_S)
    assert load.faults == []


async def test_replaced_process_serves_new_streams_on_kept_connections_and_says_that_they_close(
    deployment: Deployment,
) -> None:
    async with deployment.loaded(streams_per_s=4, calls_per_s=1) as (parent, load):
        retired = count(parent, "server.retiring")
        async with kept_connections(deployment.settings, load.tokens) as callers:
            parent.process.send_signal(signal.SIGHUP)
            await until(lambda: count(parent, "server.retiring") > retired, within_s=READY_S)
            responses = await asyncio.gather(*(caller.say("Tell me a story", MODEL) for caller in callers))
            assert {response.status for response in responses} == {200}
            assert "close" in {response.headers.get("Connection") for response in responses}
            await asyncio.gather(
                *(caller.read(response) for caller, response in zip(callers, responses, strict=True))
            )
            assert {caller.seen[-1].name for caller in callers} == {"end"}
        await two_are_left(parent)


@dataclass
class Replaceable:
    """Two processes that drain for `SHORT_DRAIN_S` when they are replaced. `tokens` are those of users."""

    parent: Command
    settings: Settings
    tokens: Iterator[str]

    def replace(self) -> None:
        self.parent.process.send_signal(signal.SIGHUP)


@asynccontextmanager
async def replaceable(databases: Databases, folder: Path) -> AsyncIterator[Replaceable]:
    async with new_deployment(databases, folder) as deployment, AsyncExitStack() as stack:
        settings = deployment.settings
        parent = await stack.enter_async_context(serving(settings, PARLEY_DRAIN_TIMEOUT_S=str(SHORT_DRAIN_S)))
        for _ in range(2):
            await parent.event("process.ready")
        await stack.enter_async_context(background(_read(parent)))
        yield Replaceable(parent, settings, cycle(deployment.tokens))


async def test_streams_that_a_replaced_process_accepts_late_are_whole_and_idle_connections_are_closed(
    databases: Databases, tmp_path: Path
) -> None:
    async with (
        replaceable(databases, tmp_path) as served,
        kept_connections(served.settings, served.tokens) as callers,
        idle_connections(served.settings) as idle,
    ):
        parent = served.parent
        served.replace()
        await until(lambda: count(parent, "server.retiring") > 0, within_s=READY_S)
        await asyncio.sleep(SHORT_DRAIN_S * 0.3)  # The streams that begin now outlast the drain.
        responses = await asyncio.gather(*(caller.say("Tell me a story", LONG_MODEL) for caller in callers))
        assert {response.status for response in responses} == {200}
        async with asyncio.timeout(READY_S):
            assert [await reader.read() for reader in idle] == [b""] * len(idle)
        await asyncio.gather(*(caller.read(response) for caller, response in zip(callers, responses, strict=True)))
        assert {caller.seen[-1].name for caller in callers} == {"end"}
        await two_are_left(parent)


async def test_requests_that_arrive_slowly_are_served_whole_by_a_replaced_process(
    databases: Databases, tmp_path: Path
) -> None:
    async with replaceable(databases, tmp_path) as served:
        slow = [
            (*await _begin(served.settings, first), second)
            for _ in range(6)
            for first, second in _requests_in_parts(served.tokens)
        ]
        async with idle_connections(served.settings) as idle, asyncio.TaskGroup() as tasks:
            served.replace()
            # A process closes all its idle connections at once. About half of the requests are its own.
            ends = [tasks.create_task(reader.read()) for reader in idle]
            await asyncio.wait(ends, timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
            responses = await asyncio.gather(*(_finish(*request) for request in slow))
        for response in responses:
            head, _, body = response.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), response
            assert b"event: end" in body or b'"session_token"' in body, response
        await two_are_left(served.parent)


def _requests_in_parts(tokens: Iterator[str]) -> list[list[bytes]]:
    """Return requests in two parts each: the cut is in the input, in the parameters, in a body, and in a head."""
    params = {"strategies": [MODEL], "type": "text", "language_code": "en", "target_language_code": "en"}
    talk, login = dumps(params) + b"Tell me a story", dumps({"device": {"id": "slow"}})
    say = b"POST /bp/ai/conversation HTTP/1.1\r\nHost: parley\r\nX-Service-Session-Token: %b\r\nContent-Length: %d"
    enter = b"POST /bp/user/login HTTP/1.1\r\nHost: parley\r\nContent-Length: %d" % len(login)
    heads = [say % (next(tokens).encode(), len(talk)) for _ in range(2)]
    whole = [
        b"\r\n\r\n".join(pair) for pair in ((heads[0], talk), (heads[1], talk), (enter, login), (enter, login))
    ]
    cuts = [len(whole[0]) - 5, len(heads[1]) + 20, len(whole[2]) - 5, len(enter) - 8]
    return [[request[:cut], request[cut:]] for request, cut in zip(whole, cuts, strict=True)]


async def _begin(settings: Settings, part: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Send the first part of a request on a new connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", settings.port)
    writer.write(part)
    return reader, writer


async def _finish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, part: bytes) -> bytes:
    """Send the second part of a request, and return all that the server sends."""
    writer.write(part)
    response = b""
    async with asyncio.timeout(READY_S):
        while not (response.endswith(b"0\r\n\r\n") or b"Content-Length" in response):
            received = await reader.read(65_536)
            if not received:
                break
            response += received
    writer.close()
    return response


@asynccontextmanager
async def kept_connection(settings: Settings) -> AsyncIterator[asyncio.StreamReader]:
    """Yield the reader of a connection whose first request has been answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", settings.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: parley\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.partition(b":")[2]))
    yield reader
    writer.close()


@asynccontextmanager
async def idle_connections(settings: Settings) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Yield the readers of connections to either process, which have had one response each."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(kept_connection(settings)) for _ in range(8)]


@asynccontextmanager
async def kept_connections(settings: Settings, tokens: Iterator[str]) -> AsyncIterator[list[Caller]]:
    """Yield callers who keep a connection each, to either process."""
    callers = []
    async with AsyncExitStack() as stack:
        for _ in range(16):
            connector = TCPConnector(limit=1, keepalive_timeout=600)
            http = await stack.enter_async_context(ClientSession(connector=connector))
            async with http.get(f"{settings.public_url}/healthz") as answer:
                assert answer.status == 200
            callers.append(Caller(http, settings.public_url, {"X-Service-Session-Token": next(tokens)}))
        yield callers


async def test_streams_are_complete_if_processes_are_stopped_while_others_retire(deployment: Deployment) -> None:
    async with deployment.loaded(streams_per_s=8, calls_per_s=20) as (parent, load):
        retired, died = count(parent, "server.retiring"), count(parent, "process.died")
        parent.process.send_signal(signal.SIGHUP)
        await until(lambda: count(parent, "server.retiring") > retired, within_s=READY_S)
        begun = len(load.begun)
        parent.process.send_signal(signal.SIGTERM)
        assert await parent.process.wait() == 0
    assert begun > 0
    assert all(not caller.cut and caller.seen[-1].name == "end" for caller in load.begun)
    assert count(parent, "process.died") == died


async def test_streams_end_normally_when_the_parent_is_killed(deployment: Deployment) -> None:
    async with deployment.loaded(streams_per_s=8, calls_per_s=1) as (parent, load):
        processes = parent.descendants()
        running = [caller for caller in load.begun if caller.seen and caller.seen[-1].name != "end"]
        parent.process.kill()
        assert not await left_of(processes)
    assert len(running) >= 4
    assert all(not caller.cut and caller.seen[-1].name == "end" for caller in running)


@pytest.mark.soak
async def test_nothing_fails_over_ten_replacements_in_half_a_minute(databases: Databases, tmp_path: Path) -> None:
    rates = {"streams_per_s": STREAMS_PER_S, "calls_per_s": CALLS_PER_S}
    async with (
        new_deployment(databases, tmp_path, kept_s=15) as deployment,
        deployment.loaded(**rates, kept_s=15) as (parent, load),
    ):
        first = {child.pid for child in parent.descendants()}
        for _ in range(SIGHUPS):
            parent.process.send_signal(signal.SIGHUP)
            await asyncio.sleep(3)  # one signal every three seconds, whether or not the last replacement is over
        await two_are_left(parent)
        assert count(parent, "processes.replacing") >= 2, "signals that come during a round are one more round"
        assert not first & {child.pid for child in parent.descendants()}
    assert load.faults == []
