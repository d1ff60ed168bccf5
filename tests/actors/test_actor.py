"""A stream ends exactly once, whatever comes while it gives back what it holds."""

import asyncio
from typing import Any

from actors.actor import Actor
from actors.context import Owner, StreamContext
from actors.mailbox import Cancel, Drain
from actors.receipt import Receipt
from actors.spiller import Spiller
from storage.detached_logs import Batch
from streams.log import EventLog
from streams.tasks import background
from streams.wire.errors import ValkeyAway, ValkeyError


class Kept:
    """Where events are spilled, while it is not away."""

    def __init__(self) -> None:
        self.away = True
        self.asked = asyncio.Event()
        self.frames = b""

    async def append(self, batch: Batch) -> None:
        self.asked.set()
        if self.away:
            raise ValkeyAway("Valkey is not reachable")
        self.frames += batch.frames

    async def is_emptied(self) -> bool:
        return False


def actor_of(play, release, *, stream_s: float = 60, kept: Kept | None = None, readable_s: float = 0) -> Actor:
    ctx = StreamContext(
        "stream",
        Owner("default", "user"),
        request_id="request",
        resources=None,
        receipt=Receipt(0),
        log=EventLog(keep_bytes=65_536, lag_bytes=65_536),
        longest_s=60,
        answer_bytes=1024,
    )
    return Actor(
        ctx,
        play,
        kind="test",
        conversation_id=None,
        spiller=lambda: Spiller(ctx.log, kept),
        release=release,
        stream_s=stream_s,
        resume_grace_s=60,
        readable_s=readable_s,
    )


async def names(actor: Actor) -> list[str]:
    frames = b"".join([ready.frames async for ready in actor.log.follow(0)])
    return [line.removeprefix("event: ") for line in frames.decode().splitlines() if line.startswith("event: ")]


async def play(_: StreamContext) -> dict[str, Any]:
    return {"finish_reason": "stop"}


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
