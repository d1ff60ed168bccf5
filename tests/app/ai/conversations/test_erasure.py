"""The streams of a deactivated user end, and what the user has stored is deleted."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from aiohttp import ClientResponse

from app.accounts.leaving.export import export_user
from app.services import Services
from storage.clock import AppClock
from storage.jobs.jobs import ExportUser
from storage.userdata.erasures import EraseUser
from tests.app.ai.conftest import Talk
from tests.app.callers import ask, token, working
from tests.peers.sse_client import SeenEvent, events, named
from tests.peers.vendor import Vendor
from tests.running.servers import ADMIN_TOKEN, Server
from tests.waiting import until

STORY = "Once upon a time"


async def read_story(response: ClientResponse) -> Any:
    """Read what a stream says before it waits for its vendor. Return its further events."""
    reading, text = events(response), ""
    while text != STORY:
        text += "".join(chunk["text"] for chunk in named([await anext(reading)], "assistant_output_chunk"))
    return reading


async def last(reading: Any) -> SeenEvent:
    async with asyncio.timeout(10):
        return [event async for event in reading][-1]


async def deleted(server: Server, talk: Talk) -> dict[str, Any]:
    path = f"/bp/server/user/{talk.uid}/erasure_receipt"
    receipt: dict[str, Any] = (await ask(server, "GET", path, headers=token()))[1]["receipt"]
    return receipt


async def stored(services: Services, talk: Talk) -> tuple[int, list[str]]:
    """The number of the user's conversations, and the keys of all objects."""
    async with services.database.connection() as conn:
        count = await conn.fetchval("select count(*) from conversations where uid = $1", talk.uid)
    folders = ("speech/", "exports/", "conversation/")
    return count, [key for folder in folders for key in await services.objects.keys(folder)]


async def add_files(server: Server, talk: Talk) -> None:
    """Store audio of text-to-speech streams of the user, and one of another user, and an export."""
    for user in (talk.uid, "somebody"):
        for day in ("20261121", "20261122"):
            key = f"speech/default/{day}/{user}/one.mp3"
            await server.services.objects.put(key, b"audio", content_type="audio/mpeg")
    path = f"/admin/api/users/default/{talk.uid}/export"
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "asked by letter"}
    assert (await ask(server, "POST", path, headers=headers))[0] == 200

    async def is_finished() -> bool:
        return bool((await ask(server, "GET", path, headers=headers))[1]["status"] == "finished")

    await until(is_finished)


async def test_deactivation_ends_streams_and_deletes_conversations_and_files(
    server: Server, services: Services, talk: Talk, strategy: Any, vendor: Vendor
) -> None:
    await strategy("quick", "say:Hello")
    await strategy("slow", f"slow:{STORY}")
    own, path = {"X-Service-Session-Token": talk.token}, "/bp/user/me/deactivate"
    await talk.turn("one", "quick")
    talk.conversation_id = ""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(working(services))
        await add_files(server, talk)
        by_user = await stack.enter_async_context(talk.say("two", "slow"))
        url = f"{server.url}/bp/server/user/{talk.uid}/ai/conversation"
        by_server = await stack.enter_async_context(
            server.http.post(url, data=talk.params("slow") + b"three", headers=token())
        )
        ended, running = await read_story(by_user), await read_story(by_server)

        assert await ask(server, "POST", path, headers=own) == (200, None)
        assert await ask(server, "POST", f"{path}/confirm", headers=own) == (200, None)

        error = (await last(ended)).content["error"]
        assert error["error_type"] == "account.invalid_session"
        await until(lambda: looks_again(services, talk))
        assert not (await deleted(server, talk))["complete"]
        vendor.release.set()
        assert (await last(running)).name == "end"
        await until(lambda: is_complete(server, services, talk))
        others = ["speech/default/20261121/somebody/one.mp3", "speech/default/20261122/somebody/one.mp3"]
        await until(lambda: has_only(services, talk, others))
    counts = (await deleted(server, talk))["deleted"]
    assert (counts["conversations"], counts["files"], counts["exports"]) == (3, 2, 1)


async def test_an_erasure_is_not_complete_while_a_stream_can_still_store_something(
    server: Server, services: Services, talk: Talk
) -> None:
    own, path = {"X-Service-Session-Token": talk.token}, "/bp/user/me/deactivate"
    async with working(services):
        assert await ask(server, "POST", path, headers=own) == (200, None)
        assert await ask(server, "POST", f"{path}/confirm", headers=own) == (200, None)
        await until(lambda: runs_again(services))
        receipt = await deleted(server, talk)
        assert (receipt["complete"], "erased_at" in receipt) == (False, False)
        key = f"speech/default/20261122/{talk.uid}/late.mp3"
        await services.objects.put(key, b"audio", content_type="audio/mpeg")
        clock: AppClock = services.clock
        await clock.move("default", offset_s=3600)
        await until(lambda: has_no_job(services))
        assert await has_only(services, talk, [])
        receipt = await deleted(server, talk)
        assert (receipt["complete"], receipt["deleted"]["files"]) == (True, 1)


async def test_an_export_that_is_written_during_the_deactivation_is_deleted(
    server: Server, services: Services, talk: Talk
) -> None:
    own, path = {"X-Service-Session-Token": talk.token}, "/bp/user/me/deactivate"
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}", "X-Parley-Reason": "asked by letter"}
    await ask(server, "POST", f"/admin/api/users/default/{talk.uid}/export", headers=headers)
    async with services.database.connection() as conn:
        job = ExportUser.of(await conn.fetchval("select args from procrastinate_jobs"))
    await export_user(services, job)
    assert len((await stored(services, talk))[1]) == 1
    assert await ask(server, "POST", path, headers=own) == (200, None)
    assert await ask(server, "POST", f"{path}/confirm", headers=own) == (200, None)
    assert (await deleted(server, talk))["deleted"]["jobs"] == 2, "the export, and the end of the freeze"
    await export_user(services, job)  # A worker that has begun before the deactivation.
    assert await has_only(services, talk, [])


async def looks_again(services: Services, talk: Talk) -> bool:
    """Whether the job has left out a conversation with a running turn."""
    return (await stored(services, talk))[0] < 3 and not await has_no_job(services)


async def has_no_job(services: Services) -> bool:
    async with services.database.connection() as conn:
        found = await conn.fetchval("select count(*) from procrastinate_jobs where task_name = $1", EraseUser.task)
    return bool(found == 0)


async def runs_again(services: Services) -> bool:
    """Whether the first run has left the second one to be done."""
    async with services.database.connection() as conn:
        found = await conn.fetchval(
            "select exists (select from procrastinate_jobs where task_name = $1 and (args -> 'last')::bool)",
            EraseUser.task,
        )
    return bool(found)


async def is_complete(server: Server, services: Services, talk: Talk) -> bool:
    async with services.database.connection() as conn:  # The second run comes after the longest stream.
        await conn.execute("update procrastinate_jobs set scheduled_at = null where task_name = $1", EraseUser.task)
    return bool((await deleted(server, talk))["complete"])


async def has_only(services: Services, talk: Talk, keys: list[str]) -> bool:
    return await stored(services, talk) == (0, keys)
