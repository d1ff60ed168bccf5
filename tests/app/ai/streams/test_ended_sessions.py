"""The end of a session ends its running streams, on every server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from aiohttp import ClientResponse

from app.http.callers.tokens import make_server_token
from storage.accounts import sessions
from storage.operators.audit import COMMAND
from storage.tokens import digest
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.two_servers import at, knows
from tests.app.operator_calls import call
from tests.app.valkey_proxy import ValkeyProxy, settings, valkey_proxy
from tests.peers.sse_client import SeenEvent, events, named
from tests.peers.vendor import Vendor
from tests.running.servers import SERVER_KEY, Server

__all__ = ["settings", "valkey_proxy"]

STORY = "Once upon a time"
WITHIN_S = 5
RECHECKED_AFTER_S = 5.5
"""A stream checks its session again if its request has taken longer than 5 s."""


async def read_story(response: ClientResponse) -> AsyncIterator[SeenEvent]:
    """Read the complete story of a stream, which then waits for its vendor. Return its further events."""
    reading, text = events(response), ""
    while text != STORY:
        text += "".join(chunk["text"] for chunk in named([await anext(reading)], "assistant_output_chunk"))
    return reading


async def rest(reading: AsyncIterator[SeenEvent]) -> list[SeenEvent]:
    async with asyncio.timeout(WITHIN_S):
        return [event async for event in reading]


async def log_out(talk: Talk) -> None:
    async with talk.post("/bp/user/logout") as response:
        assert response.status == 200


def check_ended(last: SeenEvent) -> None:
    assert last.name == "error"
    error = last.content["error"]
    assert (error["error_type"], error["extra"]["retryable"]) == ("account.invalid_session", False)


async def test_session_that_ends_while_its_request_is_sent_slowly_starts_no_stream(talk: Talk, strategy) -> None:
    await strategy("good", "say:Hello")

    async def slowly() -> AsyncIterator[bytes]:
        yield b'{"strategies": ["good"], "type": "text", '
        await asyncio.sleep(RECHECKED_AFTER_S)
        await log_out(talk)
        yield b'"language_code": "en-US", "target_language_code": "en-US"}Hello'

    async with talk.post("/bp/ai/conversation", data=slowly()) as response:
        assert (await response.json())["error"]["error_type"] == "account.invalid_session"


async def test_logout_ends_only_the_streams_of_its_session(
    server: Server, other: Server, strategy, vendor: Vendor
) -> None:
    await strategy("slow", f"slow:{STORY}")
    await knows(other, "slow")
    device = "5b0c1d6e"
    talk, same_user = Talk(server, *await server.login(device)), Talk(server, *await server.login(device))
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(talk.say("one", "slow"))
        far = await stack.enter_async_context(at(other, talk).say("two", "slow"))
        kept = await stack.enter_async_context(same_user.say("three", "slow"))
        by_server = await stack.enter_async_context(say_as_server(server, talk))
        readings = [await read_story(response) for response in (first, far, kept, by_server)]

        await log_out(talk)

        for reading in readings[:2]:
            check_ended((await rest(reading))[-1])
        vendor.release.set()
        for reading in readings[2:]:
            assert (await rest(reading))[-1].name == "end"
        same_user.remember(first)
        (record,) = (await same_user.history())["conversation_records"]
    assert record["status"] == "incomplete"
    assert record["content"][1]["content"][0]["text"] == STORY


async def test_a_ban_ends_the_streams_of_the_users_sessions(
    server: Server, talk: Talk, strategy, vendor: Vendor
) -> None:
    await strategy("slow", f"slow:{STORY}")
    async with AsyncExitStack() as stack:
        own = await stack.enter_async_context(talk.say("one", "slow"))
        by_server = await stack.enter_async_context(say_as_server(server, talk))
        reading, running = await read_story(own), await read_story(by_server)
        path = f"/admin/api/users/default/{talk.uid}/ban"
        assert (await call(server, "POST", path, {"reason": "spam"}))[0] == 200
        check_ended((await rest(reading))[-1])
        vendor.release.set()
        assert (await rest(running))[-1].name == "end", "the app's server has started it"


def say_as_server(server: Server, talk: Talk):
    token = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    path = f"{server.url}/bp/server/user/{talk.uid}/ai/conversation"
    return server.http.post(path, data=talk.params("slow") + b"four", headers={"X-Service-Auth-Token": token})


async def test_stream_ends_later_if_valkey_was_unavailable_at_the_logout(
    talk: Talk, other: Server, strategy, valkey_proxy: ValkeyProxy
) -> None:
    await strategy("slow", f"slow:{STORY}")
    await knows(other, "slow")
    async with at(other, talk).say("one", "slow") as response:
        reading = await read_story(response)
        await valkey_proxy.stop()
        await log_out(talk)
        await valkey_proxy.start()
        check_ended((await rest(reading))[-1])


async def test_stream_ends_later_if_nothing_could_announce_the_logout(
    talk: Talk, other: Server, strategy, valkey_proxy: ValkeyProxy
) -> None:
    await strategy("slow", f"slow:{STORY}")
    await knows(other, "slow")
    async with at(other, talk).say("one", "slow") as response:
        reading = await read_story(response)
        await valkey_proxy.stop()
        async with other.services.database.connection() as conn:
            await conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and application_name = 'parley notifications'"
            )
        await log_out(talk)
        check_ended((await rest(reading))[-1])


async def test_streams_continue_if_the_end_of_their_session_was_rolled_back(
    server: Server, strategy, vendor: Vendor
) -> None:
    await strategy("slow", f"slow:{STORY}")
    device = "5b0c1d6e"
    talk, leaving = Talk(server, *await server.login(device)), Talk(server, *await server.login(device))
    async with talk.say("one", "slow") as kept, leaving.say("two", "slow") as ended:
        readings = [await read_story(response) for response in (kept, ended)]
        with pytest.raises(RuntimeError):
            await end_and_roll_back(server, talk)
        await log_out(leaving)  # This session is announced after the other.
        check_ended((await rest(readings[1]))[-1])
        vendor.release.set()
        assert (await rest(readings[0]))[-1].name == "end"


async def end_and_roll_back(server: Server, talk: Talk) -> None:
    services = server.services
    async with services.database.transaction() as conn:
        ended = await sessions.end(
            conn,
            "default",
            talk.uid,
            cache=services.sessions,
            now=services.clock.now("default"),
            digest=digest(talk.token),
        )
        assert ended == 1
        raise RuntimeError


async def test_login_over_the_session_limit_ends_the_streams_of_the_oldest_session(
    server: Server, strategy
) -> None:
    auth = {"require_sign": False, "sessions_per_user": 1}
    await server.services.configs.put("default", "auth", "default", auth, author="test", origin=COMMAND)
    await strategy("slow", f"slow:{STORY}")
    device = "5b0c1d6e"
    talk = Talk(server, *await server.login(device))
    async with talk.say("one", "slow") as response:
        reading = await read_story(response)
        await server.login(device)
        check_ended((await rest(reading))[-1])
    async with talk.get("/bp/user/me") as response:
        assert response.status == 400
