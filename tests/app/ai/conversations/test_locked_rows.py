"""Rows and tables that another session has locked delay only the streams that need them."""

import asyncio

import pytest

from storage.operators.audit import COMMAND
from storage.postgres.database import Connection, Database
from tests.app.ai.conftest import Talk
from tests.app.ai.sandbox_accounts import account
from tests.app.row_locks import until_waiting, waiting_behind
from tests.peers.sse_client import SeenEvent, events
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

FREE_WITHIN_S = 2
RETRIES = 8


async def until_retried(database: Database, holder: Connection) -> None:
    """Wait until sessions have begun `RETRIES` times to wait for a lock of `holder`."""
    waits: set[tuple[object, ...]] = set()

    async def enough() -> bool:
        waits.update(await waiting_behind(database, holder))
        return len(waits) >= RETRIES

    await until(enough)


async def test_two_locked_conversations_do_not_delay_others(talk: Talk, strategy, server: Server) -> None:
    await strategy("one", "say:Fine thanks")
    held = [talk, Talk(server, *(await server.login()))]
    free = [Talk(server, *(await server.login())) for _ in range(2)]
    for one in held + free:
        await one.turn("first", "one")
    newcomer = Talk(server, *(await server.login()))
    database = server.services.database
    waiting: list[asyncio.Task[list[SeenEvent]]] = []
    async with asyncio.TaskGroup() as group:
        async with database.transaction() as holding:
            ids = [one.conversation_id for one in held]
            await holding.execute("select from conversations where conversation_id = any($1) for update", ids)
            for one in held:
                waiting.append(group.create_task(one.turn("second", "one")))
                await until_waiting(database, holding, len(waiting))  # The next one is in another batch.
            async with asyncio.timeout(FREE_WITHIN_S):
                ends = await asyncio.gather(*[one.turn("second", "one") for one in [*free, newcomer]])
            await until_retried(database, holding)
            assert not any(task.done() for task in waiting)
        assert [(seen[-1].name, seen[-1].content.get("record_id")) for seen in ends] == [
            ("end", 2),
            ("end", 2),
            ("end", 1),
        ]
        async with asyncio.timeout(5):
            late = [(await task)[-1] for task in waiting]
        assert [(event.name, event.content.get("record_id")) for event in late] == [("end", 2)] * 2
    for one in held:
        assert [r["status"] for r in (await one.history())["conversation_records"]] == ["complete"] * 2


async def _drain(server: Server, _talk: Talk, _stream_id: str) -> None:
    await server.services.supervisor.drain(0)


async def _cancel(_server: Server, talk: Talk, stream_id: str) -> None:
    async with talk.delete(f"/bp/ai/stream/{stream_id}") as response:
        assert response.status == 200, await response.text()


@pytest.mark.parametrize("stop", [_cancel, _drain])
async def test_speech_that_is_stopped_while_its_attempts_are_stored_ends_normally_and_stores_them(
    talk: Talk, server: Server, sandbox: Running, stop
) -> None:
    await account(server, sandbox, "voice", "vendor_b_audio", key_of())
    value = {"account": "voice", "model": "tts-1", "voice": "alloy"}
    await server.services.configs.put("default", "speech", "voice", value, author="test", origin=COMMAND)
    database, seen = server.services.database, []
    async with asyncio.TaskGroup() as group:
        async with database.transaction() as holding:
            await holding.execute("lock table attempts in access exclusive mode")
            body = {"text": "A sentence.", "strategies": ["voice"]}
            response = await talk.post("/bp/ai/audio/tts", json=body)
            coming = events(response)
            async for event in coming:
                seen.append(event)
                if event.name == "audio":
                    break
            await until_waiting(database, holding)
            stopping = group.create_task(stop(server, talk, response.headers["X-Service-Stream-Id"]))
            await server.login()  # The server has received the stop before.
            assert not stopping.done()
        async with asyncio.timeout(5):
            seen += [event async for event in coming]
    assert (seen[-1].name, seen[-1].content.get("finish_reason")) == ("end", "stop")
    async with database.connection() as conn:
        rows = await conn.fetch("select stage, strategy, outcome from attempts")
    assert [tuple(row) for row in rows] == [("tts", "voice", "won")]
