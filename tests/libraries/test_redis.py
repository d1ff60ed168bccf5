"""The undocumented parts of redis-py that `storage/valkey/pipeline.py` depends on."""

import asyncio

from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import AbstractConnection

from tests.libraries.installed import version_fault
from tests.running.servers import Stores

WRITER = "redis-py's connection has no StreamWriter in _writer: storage/valkey/pipeline.py takes its transport"


class Received(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = asyncio.get_running_loop().create_future()
        self.lost = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.data.set_result(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)


def test_the_version_is_in_the_range_that_was_tested() -> None:
    assert version_fault("redis") is None


async def test_the_transport_of_a_connection_can_be_taken_over_and_closed(stores: Stores) -> None:
    connection = BlockingConnectionPool.from_url(stores.redis_url).make_connection()
    assert isinstance(connection, AbstractConnection), "make_connection() of redis-py's pool returns something else"
    await connection.connect()
    assert isinstance(getattr(connection, "_writer", None), asyncio.StreamWriter), WRITER
    transport, received = connection._writer.transport, Received()

    transport.set_protocol(received)
    transport.write(b"*1\r\n$4\r\nPING\r\n")

    async with asyncio.timeout(5):
        assert await received.data == b"+PONG\r\n", "redis-py sends or reads something after connect()"
        await connection.disconnect(nowait=True)
        assert await received.lost is None, "redis-py's disconnect() does not close the transport"
    assert connection._writer is None, (
        "redis-py's disconnect() keeps the writer, so connect() does not open another"
    )
    await connection.connect()
    assert connection._writer.transport is not transport, "redis-py does not connect again after disconnect()"
    await connection.disconnect()
