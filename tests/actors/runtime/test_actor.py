"""A stream ends exactly once, whatever happens while it releases its slot."""

import asyncio
from typing import Any

from actors.runtime.context import StreamContext
from actors.runtime.mailbox import Cancel, Drain, Expire
from streams.tasks import background
from streams.wire.errors import ValkeyError
from tests.actors.runtime.single_actor import FakeDetachedLog, actor_of, names, play
from tests.waiting import passes


async def test_a_stop_while_the_slot_is_released_has_no_effect() -> None:
    releasing, go_on = asyncio.Event(), asyncio.Event()

    async def release() -> None:
        releasing.set()
        await go_on.wait()

    actor = actor_of(play, release)
    async with asyncio.timeout(5), background(actor.run()) as running:
        await releasing.wait()
        for message in (Drain(), Cancel(aborted=True), Expire(deadline=True)):
            actor.send(message)
        await passes()  # The actor receives them.
        go_on.set()
        await running
    assert await names(actor) == ["start", "end"]


async def test_a_stream_ends_although_its_slot_cannot_be_released() -> None:
    async def release() -> None:
        raise ValkeyError("gone")

    actor = actor_of(play, release)
    async with asyncio.timeout(5):
        await actor.run()
    assert await names(actor) == ["start", "end"]


async def test_a_stream_whose_last_event_cannot_be_encoded_ends_with_an_error() -> None:
    async def half(_: StreamContext) -> dict[str, Any]:
        return {"text": "\ud83d"}

    async def release() -> None:
        return None

    actor = actor_of(half, release)
    await actor.run()
    assert await names(actor) == ["start", "error"]


async def test_a_play_that_crashes_ends_its_stream_with_an_error() -> None:
    async def crash(_: StreamContext) -> dict[str, Any]:
        raise RuntimeError("a bug")

    async def release() -> None:
        return None

    actor = actor_of(crash, release)
    await actor.run()
    assert await names(actor) == ["start", "error"]


async def test_a_play_that_exceeds_its_time_ends_its_stream_with_an_error() -> None:
    async def for_ever(_: StreamContext) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def release() -> None:
        return None

    actor = actor_of(for_ever, release, stream_s=0.01)
    async with asyncio.timeout(5):
        await actor.run()
    assert await names(actor) == ["start", "error"]


async def test_a_log_that_could_not_be_copied_in_time_is_copied_on_request(monkeypatch) -> None:
    monkeypatch.setattr("actors.runtime.actor._LAST_REPLICATION_S", 0.05)
    detached, released = FakeDetachedLog(), asyncio.Event()

    async def release() -> None:
        await released.wait()

    actor = actor_of(play, release, detached=detached, readable_s=60)
    async with asyncio.timeout(5), background(actor.run()) as running, background(actor.replicate()) as copying:
        await detached.asked.wait()
        released.set()
        await running
        detached.unavailable = False
        await copying
        await actor.replicate()
    assert detached.frames == b"".join([ready.frames async for ready in actor.log.follow(0)])
    assert detached.frames.count(b"event: end") == 1
