"""An actor that runs a given play, and a fake of the log to which its events are copied."""

import asyncio
from typing import Any

from actors.runtime.actor import Actor
from actors.runtime.context import Owner, StreamContext
from actors.runtime.log_replication import LogReplicator
from actors.runtime.receipt import Receipt
from storage.conversations.detached_logs import Batch
from streams.log import EventLog
from streams.wire.errors import ValkeyUnavailable


class FakeDetachedLog:
    """Receives the copied events. Refuses them while `unavailable` is true."""

    def __init__(self) -> None:
        self.unavailable = True
        self.asked = asyncio.Event()
        self.frames = b""

    async def append(self, batch: Batch) -> None:
        self.asked.set()
        if self.unavailable:
            raise ValkeyUnavailable("Valkey is not reachable")
        self.frames += batch.frames

    async def is_emptied(self) -> bool:
        return False


def actor_of(
    play, release, *, stream_s: float = 60, detached: FakeDetachedLog | None = None, readable_s: float = 0
) -> Actor:
    ctx = StreamContext(
        "stream",
        Owner("default", "user"),
        request_id="request",
        resources=None,
        receipt=Receipt(0),
        log=EventLog(keep_bytes=65_536, lag_bytes=65_536),
        max_stream_s=60,
        answer_bytes=1024,
    )
    return Actor(
        ctx,
        play,
        kind="test",
        conversation_id=None,
        replicator=lambda: LogReplicator(ctx.log, detached),
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
