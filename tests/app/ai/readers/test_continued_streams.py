"""A durable stream whose process is killed in the middle of an answer: another process continues it."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import pytest
from aiohttp import ClientResponse

from actors.runtime.actor import Actor
from actors.runtime.context import Owner
from actors.runtime.mailbox import Cancel
from app.accounts.leaving.erasure import erase_user
from app.services import Services
from app.settings import Settings
from storage.configs.kinds.limits import LIMITS
from storage.conversations import attempts
from storage.conversations.admission import Slot
from storage.operators.audit import COMMAND
from storage.userdata.erasures import EraseUser
from tests.app.ai.conftest import Talk
from tests.app.ai.readers.resumed import resume, text_of
from tests.app.ai.readers.two_servers import at, knows
from tests.app.ai.sandbox_accounts import VOICES, account, chat
from tests.deploy.commands import Command
from tests.deploy.serving import serving
from tests.peers.sse_client import SeenEvent, all_events, events, named
from tests.running.ports import free_ports
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

STORY = "Once upon a time there was a king.\n\nHe had a dog, and the dog had a bone."
SAID = "Once upon a time"
KEY = {"Idempotency-Key": "tell-it-once"}
STALLS = {"text": STORY, "fault": "stall_mid_stream", "position": 4, "times": 1, "pace_ms": 0}
"""The first call stops in the middle of the answer. Later ones say what is left of it."""


@dataclass
class Dying:
    """A process of the deployment, and the user at it."""

    process: Command
    talk: Talk

    async def kill(self) -> None:
        self.process.process.send_signal(signal.SIGKILL)
        await self.process.end()


@asynccontextmanager
async def another_process(talk: Talk, settings: Settings) -> AsyncIterator[Dying]:
    port = free_ports(2)[0]
    async with serving(replace(settings, port=port), PARLEY_PROCESSES="1") as process:
        await process.event("server.listening")
        yield Dying(process, replace(talk, server=replace(talk.server, url=f"http://127.0.0.1:{port}")))


@pytest.fixture
async def dying(talk: Talk, settings: Settings) -> AsyncIterator[Dying]:
    async with another_process(talk, settings) as process:
        yield process


async def begun(response: ClientResponse) -> list[SeenEvent]:
    """Read the events until the vendor has stopped, and leave the response unread."""
    seen: list[SeenEvent] = []
    async for event in events(response):
        seen.append(event)
        if text_of(seen).rstrip() == SAID:
            return seen
    raise AssertionError(seen)


def check_told_once(seen: list[SeenEvent]) -> None:
    assert [event.id for event in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].name == "end", seen[-1]
    assert text_of(seen) == STORY.replace("\n\n", "")
    text = text_of(seen)
    assert seen[-1].content["digest"] == {"chars": len(text), "sha256": sha256(text.encode()).hexdigest()}


async def test_another_process_continues_the_answer_of_a_killed_one(
    talk: Talk, sandbox: Running, server: Server, other: Server, *, dying: Dying
) -> None:
    await story(server, sandbox)
    await knows(other, "story")
    stream_id, seen = await told_by_killed(dying, talk)
    last = seen[-1].id
    rest, same = await asyncio.gather(*(read(resume(asker, stream_id, last)) for asker in (talk, at(other, talk))))
    assert rest == same
    check_told_once(seen + rest)
    assert len(list(sandbox.bill.since(0))) == 2
    end = rest[-1].content
    assert [failed["strategy"] for failed in end["attempts"]] == ["story"]
    [record] = (await talk.history())["conversation_records"]
    assert (record["status"], record["record_id"]) == ("complete", end["record_id"])
    assert [item["text"] for item in record["content"][1]["content"]] == STORY.split("\n\n")
    async with server.services.database.connection() as conn:
        stored = await attempts.of_stream(conn, "default", stream_id=stream_id)
    assert stored is not None
    outcomes = [(attempt["outcome"], attempt["usage_source"]) for attempt in stored.attempts]
    assert outcomes == [("failed", "estimated"), ("won", "vendor")]
    assert all(attempt["output_unit"] > 0 for attempt in stored.attempts)


async def story(server: Server, sandbox: Running, **fields: Any) -> None:
    """Create the strategy, whose fields may differ from one that another process can continue."""
    value = {"durable": True, "on_break": "continue", "platform": "anthropic", **STALLS, **fields}
    key = key_of(**{name: value.pop(name) for name in STALLS})
    await chat(server, sandbox, "story", value.pop("platform"), key, **value)


async def told_by_killed(dying: Dying, talk: Talk, **options: Any) -> tuple[str, list[SeenEvent]]:
    """Return the stream and the events of an answer that breaks off because its process is killed."""
    async with ask(dying.talk, **options) as response:
        talk.remember(response)
        seen = await begun(response)
        await dying.kill()
        return response.headers["X-Service-Stream-Id"], seen


def ask(talk: Talk, **options: Any) -> Any:
    return talk.post("/bp/ai/conversation", data=talk.params("story", conversation_id="") + b"A story", **options)


async def dead(server: Server, talk: Talk, stream_id: str) -> None:
    """Wait until the process of a stream counts as dead. This takes half a second instead of 30."""
    services = server.services
    services.heartbeat._void_after_s = 0.5
    location = await services.admissions.find("default", talk.uid, stream_id)
    assert location is not None
    await until(lambda: services.heartbeat.dead([location.process]))


async def test_a_repeated_request_gets_the_stream_of_a_dead_process_continued(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox)
    stream_id, seen = await told_by_killed(dying, talk, headers=KEY)
    await dead(server, talk, stream_id)
    for _ in range(2):  # The second one gets the ended stream.
        async with ask(talk, headers=KEY) as repeated:
            assert repeated.headers["X-Service-Stream-Id"] == stream_id
            again = await all_events(repeated)
        check_told_once(again)
        assert again[: len(seen)] == seen
    assert len(list(sandbox.bill.since(0))) == 2
    assert (await talk.history())["conversation"]["record_count"] == 1


async def test_an_answer_that_was_complete_is_stored_without_another_call(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox, times=0, pace_ms=50)
    async with AsyncExitStack() as stack:
        async with ask(dying.talk) as response:
            talk.remember(response)
            stream_id, seen = response.headers["X-Service-Stream-Id"], list[SeenEvent]()
            async for event in events(response):
                seen.append(event)
                if len(seen) == 3:  # Keep the process from storing the answer.
                    conn = await stack.enter_async_context(server.services.database.transaction())
                    await conn.execute("select from conversation_records for update")
                if named(seen, "assistant_output_content_segment")[-1:] == [
                    {"index": 1, "text": STORY.split("\n\n")[1]}
                ]:
                    break
            services = server.services
            slot = Slot("default", talk.uid, stream_id)
            await until(lambda: is_saved(services, slot, b'"finish_reason":"stop"'))
            await dying.kill()
        await stack.aclose()
        rest = await read(resume(talk, stream_id, seen[-1].id))
    check_told_once(seen + rest)
    assert "attempts" not in rest[-1].content
    assert len(list(sandbox.bill.since(0))) == 1
    [record] = (await talk.history())["conversation_records"]
    assert record["status"] == "complete"


async def is_saved(services: Services, slot: Slot, text: bytes = b"") -> bool:
    saved = await services.valkey.call("GET", f"{slot.keys(services.valkey)[1]}:continuation")
    return saved is not None and text in saved


async def test_a_canceled_stream_of_a_dead_process_is_not_continued(
    talk: Talk, sandbox: Running, server: Server, dying: Dying
) -> None:
    await story(server, sandbox)
    stream_id, seen = await told_by_killed(dying, talk)
    await dead(server, talk, stream_id)
    async with talk.delete(f"/bp/ai/stream/{stream_id}") as canceled:
        assert canceled.status == 200
    rest = await read(resume(talk, stream_id, seen[-1].id))
    assert [event.name for event in rest] == ["error"]
    assert len(list(sandbox.bill.since(0))) == 1
    talk.conversation_id = ""
    assert (await talk.turn("Another story", "story"))[-1].name == "end"


async def test_a_process_that_was_only_cut_off_neither_stores_nor_sends_its_answer(
    talk: Talk, sandbox: Running, server: Server, other: Server
) -> None:
    await story(server, sandbox)
    await knows(other, "story")
    async with ask(talk) as response:
        talk.remember(response)
        seen, stream_id = await begun(response), response.headers["X-Service-Stream-Id"]
        owner, limits = Owner("default", talk.uid), other.services.configs.singleton(LIMITS, "default")
        location = await other.services.admissions.find(*owner, stream_id)
        assert location is not None
        taken = await other.services.takeovers.find(owner, location, limits, dead=True)
        assert isinstance(taken, Actor)
        continued = await read(resume(at(other, talk), stream_id))
        check_told_once(continued)
        actor = server.services.supervisor.find(stream_id, owner)
        assert actor is not None
        actor.send(Cancel())  # It has something to store and to send.
        rest = [event async for event in events(response)]
    assert [(event.id, event.name) for event in rest] == [(None, "error")]
    assert seen == continued[: len(seen)]
    assert await read(resume(talk, stream_id)) == continued  # It is found where it was continued.
    [record] = (await talk.history())["conversation_records"]
    assert record["status"] == "complete"
    assert [item["text"] for item in record["content"][1]["content"]] == STORY.split("\n\n")
    assert await other.services.admissions.find(*owner, stream_id) == replace(
        location, process=other.services.heartbeat.process
    )


@pytest.mark.parametrize(
    ("fields", "continues"),
    [
        ({}, True),
        ({"on_break": "fail"}, False),
        ({"on_break": "restart"}, False),
        ({"platform": "vendor_b_llm"}, False),
        ({"speech": "voice"}, False),
        ({"durable": False}, False),
    ],
)
async def test_only_what_another_process_could_continue_is_saved_and_the_user_can_erase_it(
    talk: Talk, sandbox: Running, server: Server, *, fields: dict[str, Any], continues: bool
) -> None:
    await account(server, sandbox, "voice", "vendor_c")
    voice = {"account": "voice", **VOICES["vendor_c"]}
    await server.services.configs.put("default", "speech", "voice", voice, author="test", origin=COMMAND)
    await story(server, sandbox, **fields)
    async with ask(talk) as response:
        await begun(response)
        slot = Slot("default", talk.uid, response.headers["X-Service-Stream-Id"])
        assert await is_saved(server.services, slot) is continues
        await erase_user(server.services, EraseUser(app_id="default", uid=talk.uid))
        assert not await is_saved(server.services, slot)


async def read(request: Any) -> list[SeenEvent]:
    async with request as response:
        return await all_events(response)
