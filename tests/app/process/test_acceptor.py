"""Accepting connections: few per iteration of the event loop, and none is reset when accepting stops."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from app.process.acceptor import Acceptor
from streams.tasks import background
from tests.waiting import until

CLIENTS = 100
MAX_PER_ITERATION = 16


class Echo(asyncio.Protocol):
    """Sends back what it receives."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)
        self.transport.close()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=CLIENTS) as listener:
        yield listener


@pytest.fixture
def clients(listener: socket.socket) -> Iterator[list[socket.socket]]:
    """Clients that wait to be accepted."""
    sockets = [socket.create_connection(listener.getsockname()) for _ in range(CLIENTS)]
    yield sockets
    for client in sockets:
        client.close()


@asynccontextmanager
async def accepting(
    listener: socket.socket, make_protocol: Callable[[], asyncio.BaseProtocol] = Echo
) -> AsyncIterator[None]:
    acceptor = Acceptor(listener.dup(), make_protocol)
    acceptor.start()
    try:
        yield
    finally:
        await acceptor.stop()


async def answer(client: socket.socket) -> bytes:
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(30):
        await loop.sock_sendall(client, b"hello")
        return await loop.sock_recv(client, 100)


async def test_a_burst_of_connections_is_accepted_over_several_iterations(
    listener: socket.socket, clients: list[socket.socket]
) -> None:
    iteration = 0
    opened: Counter[int] = Counter()

    async def count_iterations() -> None:
        nonlocal iteration
        while True:
            iteration += 1
            await asyncio.sleep(0)

    def make_protocol() -> Echo:
        opened[iteration] += 1
        return Echo()

    async with background(count_iterations()), accepting(listener, make_protocol):
        await until(lambda: opened.total() == CLIENTS)
        assert max(opened.values()) <= MAX_PER_ITERATION
        assert await asyncio.gather(*map(answer, clients)) == [b"hello"] * CLIENTS


async def test_a_connection_that_cannot_be_opened_does_not_end_accepting(
    listener: socket.socket, clients: list[socket.socket]
) -> None:
    failures = iter([MemoryError()])

    def make_protocol() -> Echo:
        for error in failures:
            raise error
        return Echo()

    async with accepting(listener, make_protocol):
        answers = await asyncio.gather(*map(answer, clients), return_exceptions=True)
    assert sum(answer == b"hello" for answer in answers) == CLIENTS - 1


async def test_connections_that_wait_when_accepting_stops_are_answered_by_the_next_acceptor(
    listener: socket.socket, clients: list[socket.socket]
) -> None:
    async def stop_and_start() -> None:
        for _ in range(CLIENTS // MAX_PER_ITERATION + 2):
            async with accepting(listener):
                await asyncio.sleep(0)

    async with background(stop_and_start()) as restarts:
        answers = asyncio.gather(*map(answer, clients))
        await restarts
        async with accepting(listener):
            assert await answers == [b"hello"] * CLIENTS
