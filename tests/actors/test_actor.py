"""A stream ends exactly once, whatever comes while it gives back what it holds."""

import asyncio
from typing import Any

from actors.context import StreamContext
from actors.mailbox import Cancel, Drain
from streams.tasks import background
from streams.wire.errors import ValkeyError
from tests.actors.one_actor import Kept, actor_of, names, play


async def test_a_stop_while_the_place_is_given_back_changes_nothing() -> None:
    giving, go_on = asyncio.Event(), asyncio.Event()

    async def release() -> None:
        giving.set()
        await go_on.wait()

    actor = actor_of(play, release, stream_s=0.01)
    async with asyncio.timeout(5), background(actor.run()) as running:
        await giving.wait()
        actor.tell(Drain())
        actor.tell(Cancel(aborted=True))
        await asyncio.sleep(0.03)
        go_on.set()
        await running
    assert await names(actor) == ["start", "end"]


async def test_a_place_that_cannot_be_given_back_still_lets_the_stream_end() -> None:
    async def release() -> None:
        raise ValkeyError("gone")

    actor = actor_of(play, release)
    async with asyncio.timeout(5):
        await actor.run()
    assert await names(actor) == ["start", "end"]


async def test_a_play_that_crashes_ends_its_stream_with_an_error() -> None:
    async def crash(_: StreamContext) -> dict[str, Any]:
        raise RuntimeError("a bug")

    async def release() -> None:
        return None

    actor = actor_of(crash, release)
    await actor.run()
    assert await names(actor) == ["start", "error"]


async def test_a_play_that_is_too_long_is_stopped_and_told() -> None:
    async def for_ever(_: StreamContext) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    async def release() -> None:
        return None

    actor = actor_of(for_ever, release, stream_s=0.01)
    async with asyncio.timeout(5):
        await actor.run()
    assert await names(actor) == ["start", "error"]


async def test_what_could_not_be_spilled_in_time_is_spilled_when_it_is_asked_for(monkeypatch) -> None:
    monkeypatch.setattr("actors.actor._LAST_SPILL_S", 0.05)
    kept, said = Kept(), asyncio.Event()

    async def release() -> None:
        await said.wait()

    actor = actor_of(play, release, kept=kept, readable_s=60)
    async with asyncio.timeout(5), background(actor.run()) as running, background(actor.spill()) as spilled:
        await kept.asked.wait()
        said.set()
        await running
        kept.away = False
        await spilled
        await actor.spill()
    assert kept.frames == b"".join([ready.frames async for ready in actor.log.follow(0)])
    assert kept.frames.count(b"event: end") == 1
