"""Answers of a process to questions of other processes about its streams."""

import asyncio
from typing import Any

from actors.runtime.actor import Actor
from actors.runtime.context import Owner, StreamContext
from actors.runtime.mailbox import Cancel
from actors.runtime.relay import Relay
from actors.runtime.supervisor import Supervisor
from tests.actors.runtime.single_actor import actor_of

OWNER = Owner("default", "user")
QUESTION = {"op": "input", "app_id": OWNER.app_id, "user_id": OWNER.user_id, "stream_id": "stream"}


async def wait_for_input(ctx: StreamContext) -> dict[str, Any]:
    await ctx.input.completed()
    return {"finish_reason": "stop"}


async def release() -> None:
    return None


def waiting_actor() -> Actor:
    """An actor that answers as soon as its input is complete."""
    return actor_of(wait_for_input, release, readable_s=60)


async def test_a_stream_whose_client_was_lost_answers_no_repeat_even_before_its_task_is_done() -> None:
    supervisor, actor = Supervisor(), waiting_actor()
    relay = Relay(None, None, supervisor, None)
    supervisor.start(actor)
    async with asyncio.timeout(5):
        await asyncio.sleep(0)
        actor.send(Cancel(aborted=True))
        await actor.outcome
        assert supervisor.find("stream", OWNER) is actor, "its task is not done yet"
        assert await relay.answer(QUESTION) == {"known": True, "whole": False}
        await supervisor.drain(1)
    assert await relay.answer(QUESTION) == {"known": False}


async def test_a_stream_that_has_its_input_answers_a_repeat_also_after_its_end() -> None:
    supervisor, actor = Supervisor(), waiting_actor()
    relay = Relay(None, None, supervisor, None)
    supervisor.start(actor)
    async with asyncio.timeout(5):
        await asyncio.sleep(0)
        assert await relay.answer(QUESTION) == {"known": True, "whole": False}
        actor.ctx.input.end()
        assert await relay.answer(QUESTION) == {"known": True, "whole": True}
        await supervisor.drain(1)
    assert await relay.answer(QUESTION) == {"known": True, "whole": True}
