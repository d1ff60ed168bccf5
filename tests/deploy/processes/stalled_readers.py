"""A server process, and clients that never read their responses."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import psutil
import pytest
from aiohttp import ClientSession, ClientTimeout

from app.settings import Settings
from streams.tasks import background
from tests.deploy.callers import Caller
from tests.deploy.commands import Command
from tests.deploy.serving import serving, settings

__all__ = ["ServerProcess", "Stalled", "http", "server_process", "settings", "stalled"]

_RECEIVE_BYTES = 4096
_ANSWERED_WITHIN_S = 60


@dataclass
class Stalled:
    """Connections on which a request was sent, but no response is read."""

    port: int
    sockets: list[socket.socket] = field(default_factory=list)

    async def get(self, caller: Caller, stream_id: str) -> None:
        """Resume a stream, and wait until the first bytes of the answer have arrived."""
        await self.request(caller, f"/bp/ai/stream/{stream_id}")

    async def request(self, caller: Caller, path: str, *, refused: bool = False) -> None:
        """Request `path`, and wait for the first bytes of the response. `refused`: a 429 is allowed."""
        await self._ask(f"GET {path} HTTP/1.1", caller, b"", refused=refused)

    async def post(self, caller: Caller, path: str, body: bytes) -> None:
        """Begin a stream, and wait until the first bytes of the answer have arrived."""
        await self._ask(f"POST {path} HTTP/1.1", caller, body)

    def close(self) -> None:
        for client in self.sockets:
            client.close()
        self.sockets.clear()

    async def _ask(self, line: str, caller: Caller, body: bytes, *, refused: bool = False) -> None:
        loop = asyncio.get_running_loop()
        client = socket.socket()
        self.sockets.append(client)
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        await loop.sock_connect(client, ("127.0.0.1", self.port))
        token = caller.headers["X-Service-Session-Token"]
        head = f"{line}\r\nHost: parley\r\nX-Service-Session-Token: {token}\r\nContent-Length: {len(body)}\r\n\r\n"
        await loop.sock_sendall(client, head.encode() + body)
        answered = loop.create_future()
        loop.add_reader(client, lambda: answered.done() or answered.set_result(None))
        try:
            async with asyncio.timeout(_ANSWERED_WITHIN_S):
                await answered
        finally:
            loop.remove_reader(client)
        begin = client.recv(400, socket.MSG_PEEK)
        assert begin.startswith(b"HTTP/1.1 200") or (refused and begin.startswith(b"HTTP/1.1 429")), begin


@contextmanager
def stalled(port: int) -> Iterator[Stalled]:
    readers = Stalled(port)
    try:
        yield readers
    finally:
        readers.close()


@pytest.fixture
async def http() -> AsyncIterator[ClientSession]:
    async with ClientSession(timeout=ClientTimeout(total=60)) as session:
        yield session


@dataclass
class ServerProcess:
    process: psutil.Process
    metrics_url: str
    http: ClientSession

    @property
    def rss_bytes(self) -> int:
        return self.process.memory_info().rss

    async def metric(self, name: str) -> float:
        """Return the sum of a metric's samples."""
        async with self.http.get(self.metrics_url) as answer:
            lines = (await answer.text()).splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))


async def _drain_log(running: Command) -> None:
    """Read the log of the process, because it blocks when its pipe is full."""
    async for _ in running:
        pass


@asynccontextmanager
async def server_process(settings: Settings, http: ClientSession, **more: str) -> AsyncIterator[ServerProcess]:
    """`python -m app serve` on the stores of the test, with its metrics on a separate port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        metrics_port = free.getsockname()[1]
    alone = {"PARLEY_PROCESSES": "1", "PARLEY_DRAIN_TIMEOUT_S": "0", "PARLEY_METRICS_PORT": str(metrics_port)}
    async with serving(settings, fresh=True, **alone, **more) as running:
        await running.event("server.listening")
        async with background(_drain_log(running)):
            yield ServerProcess(
                psutil.Process(running.process.pid), f"http://127.0.0.1:{metrics_port}/metrics", http
            )
