"""Many commands share one connection. Each caller gets its own reply or a timeout."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from storage.availability import Availability
from storage.valkey.client import Valkey, map_errors
from storage.valkey.opening import open_valkey
from storage.valkey.pipeline import CommandPipeline
from streams.tasks import background
from streams.wire.errors import StoreUnavailable
from streams.wire.ids import new_id
from tests.running.servers import Stores

pytestmark = pytest.mark.one_valkey


@pytest.fixture
async def valkey(stores: Stores) -> AsyncIterator[Valkey]:
    async with open_valkey(stores.redis_url, prefix=f"test-{new_id()}:") as opened:
        yield opened


async def test_each_concurrent_caller_gets_its_own_reply(valkey: Valkey) -> None:
    said = await asyncio.gather(*(valkey.call("ECHO", f"word {number}") for number in range(500)))
    assert said == [f"word {number}".encode() for number in range(500)]


async def test_a_cancelled_caller_does_not_get_the_reply_of_another(valkey: Valkey) -> None:
    async def echo(number: int) -> object:
        return await valkey.call("ECHO", str(number))

    async with asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(echo(number)) for number in range(50)]
        await asyncio.sleep(0)
        for call in calls[::3]:
            call.cancel()
    for number, call in enumerate(calls):
        if number % 3:
            assert call.result() == str(number).encode()
        else:
            assert call.cancelled()


async def test_refused_command_fails_alone(valkey: Valkey) -> None:
    key = valkey.key("a", "text")
    refused, reported = await asyncio.gather(
        valkey.call("NOSUCH"), valkey.call("SET", key, b"\x00\r\n\xff"), return_exceptions=True
    )
    assert isinstance(refused, ResponseError)
    assert reported == b"OK"
    assert await valkey.call("GET", key) == b"\x00\r\n\xff"


async def test_script_that_valkey_has_forgotten_is_sent_again(valkey: Valkey) -> None:
    requested = {"keys": [valkey.key("a", "rate")], "args": [1, 1000.0, 1]}
    assert await valkey.run("limit", **requested) == [[0, b"1"]]
    await valkey.client.script_flush()
    assert (await valkey.run("limit", **requested))[0][0] > 0


async def test_a_lost_connection_fails_only_the_commands_in_flight(valkey: Valkey) -> None:
    own = await valkey.call("CLIENT", "ID")
    waiting, killed = await asyncio.gather(
        valkey.call("BLPOP", valkey.key("a", "never"), 0),
        valkey.client.client_kill_filter(_id=own),
        return_exceptions=True,
    )
    assert killed == 1
    assert isinstance(waiting, RedisConnectionError)
    assert await valkey.call("CLIENT", "ID") != own


async def test_commands_without_an_answer_time_out(valkey: Valkey) -> None:
    never, began = valkey.key("a", "never"), time.monotonic()
    with pytest.raises(StoreUnavailable), map_errors():
        await valkey.call("BLPOP", never, 0)
    assert 0.9 < time.monotonic() - began < 3
    assert await valkey.call("PING") == b"PONG"


async def test_every_caller_gets_the_error_of_an_unavailable_server() -> None:
    async with open_valkey("redis://127.0.0.1:1") as unavailable:
        failed = await asyncio.gather(*(unavailable.call("PING") for _ in range(20)), return_exceptions=True)
    assert all(isinstance(error, RedisConnectionError | OSError) for error in failed)


@asynccontextmanager
async def unresponsive_server() -> AsyncIterator[tuple[str, list[asyncio.StreamWriter]]]:
    """Accept connections and never answer. Yield the URL, and a list of the connections."""

    def accept(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        silent.append(writer)

    silent: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", silent
    finally:
        for writer in silent:
            writer.close()
        server.close()


async def test_all_callers_share_one_wait_for_an_unresponsive_server() -> None:
    async with unresponsive_server() as (url, silent), open_valkey(url) as hanging:
        began = time.monotonic()
        failed = await asyncio.gather(*(hanging.call("PING") for _ in range(50)), return_exceptions=True)
        assert time.monotonic() - began < 4
        assert all(isinstance(error, RedisConnectionError | RedisTimeoutError) for error in failed), failed[0]
        assert len(silent) == 1


@pytest.mark.parametrize("turns", range(12))
async def test_a_connection_may_be_closed_while_it_is_opened(stores: Stores, turns: int) -> None:
    async with open_valkey(stores.redis_url) as valkey:
        await valkey.client.connection_pool.disconnect()
        connection = valkey.client.connection_pool.make_connection()
        pipeline = CommandPipeline(connection, answer_s=1, availability=Availability("valkey", location="test"))
        async with background(_outcome(pipeline.call("PING"))) as call:
            for _ in range(turns):
                await asyncio.sleep(0)
            await pipeline.close()
            answer = await call
        assert answer == b"PONG" or isinstance(answer, RedisConnectionError), repr(answer)
        assert isinstance(await _outcome(pipeline.call("PING")), RedisConnectionError)
        assert not connection.is_connected


async def _outcome(call: Awaitable[object]) -> object:
    try:
        return await call
    except Exception as error:  # noqa: BLE001 - each kind of error is judged by the test
        return error
