"""Streams while a store is unavailable: one turn at a time, no answer is lost, and every slot is released."""

import asyncio
from contextlib import suppress

from app.settings import Settings
from storage.conversations.retry_queue import enqueue, write_queued
from storage.conversations.turn_rows import ClosedTurn, TurnOutcome
from storage.operators.audit import COMMAND
from storage.postgres.database import Connection
from streams.wire.errors import StoreError
from tests.app.ai.conftest import Talk
from tests.app.row_locks import waiting_behind
from tests.app.valkey_proxy import ValkeyProxy, settings, valkey_proxy
from tests.peers.sse_client import all_events, events
from tests.peers.vendor import Vendor
from tests.running.read_only import read_only
from tests.running.servers import Server
from tests.waiting import until

__all__ = ["settings", "valkey_proxy"]

_RUNNING = "select count(*) from conversation_records where status = 'running'"


async def until_first_words(response) -> None:
    async for event in events(response):
        if event.name == "assistant_output_chunk":
            return


async def test_without_valkey_a_second_turn_is_refused_and_the_first_is_stored(
    talk: Talk, strategy, vendor: Vendor, valkey_proxy: ValkeyProxy
) -> None:
    await strategy("one", "say:Fine")
    await strategy("slow", "slow:Once upon a time")
    await talk.turn("hello", "one")
    await valkey_proxy.stop()
    async with talk.say("go on", "slow") as running:
        await until_first_words(running)
        async with talk.say("again", "one") as second:
            assert second.status == 409
        vendor.release.set()
        assert (await all_events(running))[-1].name == "end"
    record = (await talk.history())["conversation_records"][0]
    assert (record["record_id"], record["status"]) == (2, "complete")
    assert (await talk.turn("third", "one"))[-1].content["record_id"] == 3


async def test_without_valkey_a_user_has_four_streams_at_most(
    talk: Talk, strategy, vendor: Vendor, valkey_proxy: ValkeyProxy
) -> None:
    await strategy("slow", "slow:Once upon")
    await valkey_proxy.stop()
    running = [await talk.say("go", "slow") for _ in range(4)]
    assert [response.status for response in running] == [200] * 4
    async with talk.say("go", "slow") as fifth:
        assert fifth.status == 429
    vendor.release.set()
    for response in running:
        assert (await all_events(response))[-1].name == "end"
        response.release()


async def test_a_slot_is_released_when_valkey_is_available_again(
    talk: Talk, strategy, vendor: Vendor, valkey_proxy: ValkeyProxy, server: Server
) -> None:
    await strategy("one", "say:Fine")
    await strategy("slow", "slow:Once upon a time")
    async with talk.say("go", "slow") as response:
        talk.remember(response)
        await until_first_words(response)
        await valkey_proxy.stop()
        vendor.release.set()
        assert (await all_events(response))[-1].name == "end"
    await valkey_proxy.start()

    async def is_free() -> bool:
        async with talk.say("again", "one") as second:
            if second.status == 200:
                assert (await all_events(second))[-1].content["record_id"] == 2
                return True
            assert second.status == 409
            return False

    await until(is_free, every_s=0.05)


async def test_a_queued_end_is_written_once(talk: Talk, strategy, server: Server, vendor: Vendor) -> None:
    await strategy("slow", "slow:Once upon")
    services = server.services
    async with talk.say("go", "slow") as response:
        talk.remember(response)
        stream_id = response.headers["X-Service-Stream-Id"]
        await until_first_words(response)
        text = {"type": "text", "text": "Parked", "source": {"from_user": False, "platform": "x", "model": "y"}}
        message = {"role": "assistant", "content": [text]}
        answered = TurnOutcome("complete", "slow", message, 3, 4, tokens_estimated=False)
        turn = ClosedTurn("default", talk.uid, talk.conversation_id, 1, stream_id, answered, [])
        for _ in range(2):
            await enqueue(services.valkey, turn)
        async with asyncio.timeout(8):
            while (await talk.history())["conversation"]["status"] == "running":
                await write_queued(services.database, services.valkey)
        await write_queued(services.database, services.valkey)
        vendor.release.set()
        await all_events(response)
    data = await talk.history()
    assert data["conversation"]["record_token"] == 7
    assert [m["role"] for m in data["conversation_records"][0]["content"]] == ["user", "assistant"]
    assert data["conversation_records"][0]["content"][1]["content"][0]["text"] == "Parked"


async def test_the_end_of_a_turn_is_retried_if_the_connection_is_lost(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon")
    database = server.services.database

    async def cut(conn: Connection, holding: Connection) -> bool:
        waiting = await waiting_behind(database, holding)
        return bool(waiting) and await conn.fetchval("select pg_terminate_backend($1)", waiting[0][0])

    async with talk.say("go", "slow") as response:
        talk.remember(response)
        await until_first_words(response)
        async with database.transaction() as holding:
            await holding.execute("select from conversations for update")
            vendor.release.set()
            async with database.connection() as conn:
                await until(lambda: cut(conn, holding))
        assert (await all_events(response))[-1].name == "end"
    data = await talk.history()
    assert [record["status"] for record in data["conversation_records"]] == ["complete"]
    assert len(data["conversation_records"][0]["content"]) == 2
    async with database.connection() as conn:
        assert await conn.fetchval("select count(*) from attempts") == 1


async def test_the_end_of_a_turn_is_written_once_the_database_accepts_writes_again(
    talk: Talk, strategy, server: Server, vendor: Vendor, settings: Settings
) -> None:
    await strategy("slow", "slow:Once upon")
    services = server.services
    async with talk.say("go", "slow") as response:
        talk.remember(response)
        await until_first_words(response)
        async with read_only(settings.database_url):
            vendor.release.set()
            assert (await all_events(response))[-1].name == "end"
    async with asyncio.timeout(5):
        while True:
            with suppress(StoreError):  # From a connection that is not yet known to be closed.
                await write_queued(services.database, services.valkey)
                async with services.database.connection() as conn:
                    if not await conn.fetchval(_RUNNING):
                        break
    records = (await talk.history())["conversation_records"]
    assert [(record["status"], len(record["content"])) for record in records] == [("complete", 2)]
    assert (await talk.turn("again", "slow"))[-1].content["record_id"] == 2


_SPEAK = {"text": "Hello.", "strategies": ["voice"]}


async def test_attempts_of_a_stream_without_a_turn_are_written_once_the_database_accepts_writes_again(
    talk: Talk, server: Server, vendor: Vendor, settings: Settings
) -> None:
    put, services = server.services.configs.put, server.services
    account = {"platform": "vendor_b_audio", "base_url": vendor.url, "api_key": "sk-test"}
    await put("default", "vendor_accounts", "voice", account, author="test", origin=COMMAND)
    voice = {"account": "voice", "model": "none", "voice": "alloy"}
    await put("default", "speech", "voice", voice, author="test", origin=COMMAND)
    async with read_only(settings.database_url):
        async with asyncio.timeout(5):
            while (response := await talk.post("/bp/ai/audio/tts", json=_SPEAK)).status == 503:
                await response.read()  # From a connection that is not yet known to be closed.
        stream_id = response.headers["X-Service-Stream-Id"]
        assert (await all_events(response))[-1].name == "error"
        assert await services.valkey.client.llen(services.valkey.key("retry_queue", "attempts")) == 1
    query = "select strategy, outcome from attempts where stream_id = $1"

    async def written() -> list[tuple[str, str]]:
        with suppress(StoreError):  # From a connection that is not yet known to be closed.
            await write_queued(services.database, services.valkey)
            async with services.database.connection() as conn:
                return [tuple(row) for row in await conn.fetch(query, stream_id)]
        return []

    await until(written, every_s=0.1)
    assert await written() == [("voice", "failed")]


_FULL = """
create function full_disk() returns trigger language plpgsql as $$ begin
    raise exception 'No space left on device' using errcode = '53100';
end $$;
create trigger full_disk before update on conversation_records execute function full_disk()
"""


async def test_the_end_of_a_turn_that_neither_store_accepts_names_both_causes(
    talk: Talk, strategy, server: Server, vendor: Vendor, valkey_proxy: ValkeyProxy
) -> None:
    await strategy("slow", "slow:Once upon a time")
    async with talk.say("go", "slow") as response:
        await until_first_words(response)
        async with server.services.database.connection() as conn:
            await conn.execute(_FULL)
        await valkey_proxy.stop()
        vendor.release.set()
        last = (await all_events(response))[-1]
    assert last.content["error"]["message"].startswith(
        "database: the database's disk is full, and Valkey is not reachable: "
    )
    assert last.content["error"]["message"].endswith(": the answer was not stored")
