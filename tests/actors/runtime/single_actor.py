"""An actor that runs a given play, with fakes of its slot and of the log to which its events are copied."""

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from actors.runtime.actor import Actor
from actors.runtime.context import Owner, StreamContext
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

    async def append(self, batch: Batch, **_: float) -> None:
        self.asked.set()
        if self.unavailable:
            raise ValkeyUnavailable("Valkey is not reachable")
        self.frames += batch.frames

    async def check(self, last: int) -> None:
        """Nothing is lost."""


@dataclass
class FakeSlot:
    """Calls `on_release` when it is released."""

    on_release: Any
    detached: FakeDetachedLog | None
    readable_s: float
    keep_s = 60.0

    async def release(self, *, aborted: bool) -> None:
        await self.on_release()

    def detached_log(self) -> FakeDetachedLog | None:
        return self.detached


def actor_of(
    play, release, *, stream_s: float = 60, detached: FakeDetachedLog | None = None, readable_s: float = 0
) -> Actor:
    ctx = StreamContext(
        "stream",
        Owner("default", "user"),
        request_id="request",
        resources=SimpleNamespace(traces=None, tells_config_faults=False),
        receipt=Receipt(0),
        log=EventLog(keep_bytes=65_536, lag_bytes=65_536),
        max_stream_s=60,
        answer_bytes=1024,
    )
    return Actor(
        ctx,
        play,
        FakeSlot(release, detached, readable_s),
        kind="test",
        conversation_id=None,
        stream_s=stream_s,
        resume_grace_s=60,
    )


async def names(actor: Actor) -> list[str]:
    frames = b"".join([ready.frames async for ready in actor.log.follow(0)])
    return [line.removeprefix("event: ") for line in frames.decode().splitlines() if line.startswith("event: ")]


async def play(_: StreamContext) -> dict[str, Any]:
    return {"finish_reason": "stop"}
