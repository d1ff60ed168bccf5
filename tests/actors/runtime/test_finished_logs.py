"""The logs of ended streams are counted, and bounded, until their last reader has left."""

import asyncio
from typing import Any

import pytest

from actors.runtime.actor import Actor
from actors.runtime.context import StreamContext
from actors.runtime.mailbox import Attach, Detach
from actors.runtime.supervisor import Supervisor
from streams.log import Gone
from tests.actors.runtime.single_actor import actor_of
from tests.waiting import until

FRAME = b"x" * 1000


async def release() -> None:
    return None


async def play(ctx: StreamContext) -> dict[str, Any]:
    for _ in range(10):
        await ctx.log.append(FRAME)
    return {"finish_reason": "stop"}


async def ended(supervisor: Supervisor, *, readable_s: float) -> Actor:
    """Run a stream to its end. Its reader has not read anything."""
    actor = actor_of(play, release, readable_s=readable_s)
    actor.send(Attach())
    supervisor.start(actor)
    async with asyncio.timeout(5):
        await supervisor.idle()
    return actor


async def test_a_log_is_counted_until_its_readers_have_left() -> None:
    supervisor = Supervisor()
    actor = await ended(supervisor, readable_s=0.01)
    try:
        await until(lambda: supervisor.find(actor.stream_id, actor.ctx.owner) is None)
        assert supervisor.finished_bytes >= 10 * len(FRAME)
        frames = [ready.frames async for ready in actor.log.follow(0)]
        assert b"".join(frames).count(FRAME) == 10

        actor.send(Detach())
        await until(lambda: not supervisor.finished_bytes, within_s=20)
    finally:
        supervisor.close()


async def test_readers_of_an_ended_stream_are_cut_if_the_logs_become_too_large() -> None:
    supervisor = Supervisor(finished_bytes=15 * len(FRAME))
    slow = await ended(supervisor, readable_s=0.01)
    try:
        following = slow.log.follow(0)
        await until(lambda: supervisor.find(slow.stream_id, slow.ctx.owner) is None)
        other = await ended(supervisor, readable_s=60)

        assert supervisor.find(other.stream_id, other.ctx.owner) is other
        assert 10 * len(FRAME) <= supervisor.finished_bytes <= 15 * len(FRAME)
        assert slow.log.kept_bytes == 0
        with pytest.raises(Gone):
            await anext(following)
    finally:
        supervisor.close()
