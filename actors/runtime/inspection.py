"""What operators see of the streams of this process. It is read from the actors when it is asked for."""

import asyncio
import time
from heapq import nlargest, nsmallest
from typing import Any, NamedTuple, Self

from actors.runtime.actor import Actor
from actors.runtime.supervisor import Supervisor
from vendors.calls.attempts import AttemptRecord

_BATCH = 200
"""Number of streams to look at before other tasks may run."""
_MAIN_STAGES = {"conversation": "llm", "tts": "tts", "pronunciation": "assess"}


class Wanted(NamedTuple):
    """Selects streams of a page. `None` matches all.

    The page has at most `size` streams in the order of their ids, which is that of their beginning. They come after
    the id `position` or, if `newest_first`, before it.
    """

    app_id: str | None
    user_id: str | None
    kind: str | None
    strategy: str | None
    newest_first: bool
    position: str | None
    size: int

    @classmethod
    def of(cls, value: dict[str, Any]) -> Self:
        """Return the instance for which `_asdict` returned `value`."""
        return cls(*(value[name] for name in cls._fields))

    def matches(self, actor: Actor) -> bool:
        owner = actor.ctx.owner
        return (
            self.app_id in {None, owner.app_id}
            and self.user_id in {None, owner.user_id}
            and self.kind in {None, actor.kind}
            and (
                self.strategy is None
                or ((found := answering(actor)) is not None and found.strategy == self.strategy)
            )
        )

    def is_after(self, stream_id: str) -> bool:
        """Return whether a stream comes after `position`."""
        if self.position is None:
            return True
        return stream_id < self.position if self.newest_first else stream_id > self.position


async def inspect(supervisor: Supervisor, what: str, wanted: dict[str, Any]) -> Any:
    """Answer another process: the streams of a page (`list`), or what is known of one (`inspect`)."""
    if what == "list":
        return await running(supervisor, Wanted.of(wanted))
    actor = supervisor.find_in_app(wanted["stream_id"], wanted["app_id"])
    return actor and details(actor)


async def running(supervisor: Supervisor, wanted: Wanted) -> dict[str, Any]:
    """Return the running streams of one page, and the number of all that match, as JSON."""
    matching: list[Actor] = []
    for number, actor in enumerate(supervisor.live(), 1):
        if wanted.matches(actor):
            matching.append(actor)
        if number % _BATCH == 0:
            await asyncio.sleep(0)
    first = nlargest if wanted.newest_first else nsmallest
    page = first(
        wanted.size,
        (actor for actor in matching if wanted.is_after(actor.stream_id)),
        key=lambda actor: actor.stream_id,
    )
    return {"streams": [summary(actor) for actor in page], "total": len(matching)}


def summary(actor: Actor) -> dict[str, Any]:
    """Return one line about a stream, as JSON."""
    ctx, log, found = actor.ctx, actor.log, answering(actor)
    return {
        "stream_id": ctx.stream_id,
        "kind": actor.kind,
        "app": ctx.owner.app_id,
        "user_id": ctx.owner.user_id,
        "strategy": found and found.strategy,
        "vendor": found and found.vendor,
        "model": (found and found.model) or None,
        "age_ms": _ms_since(ctx.receipt.arrived),
        "state": actor.state,
        "readers": actor.readers,
        "events": log.last_id,
        "bytes": log.size_bytes,
        "lag_bytes": log.lag,
        "request_id": ctx.request_id,
    }


def details(actor: Actor) -> dict[str, Any]:
    """Return what is known of a stream that runs or can still be read, as JSON. Ended ones have no attempts here.

    `dropped`: the id of its newest event that is no longer kept. `readable_elsewhere`: whether its events can be
    read through other processes.
    """
    ctx = actor.ctx
    has_ended = actor.outcome.done()
    attempts: list[dict[str, Any]] = []
    for row, record in zip(ctx.attempt_rows(), ctx.attempts, strict=True):
        shown: dict[str, Any] = {**row}
        if not record.ended:
            shown |= {"outcome": "running", "elapsed_ms": _ms_since(record.started_at)}
        attempts.append(shown)
    return {
        **summary(actor),
        "conversation_id": actor.conversation_id,
        "began_ms": ctx.arrived_ms(),
        "ended": has_ended,
        "latency_ms": ctx.receipt.latency_ms,
        "characters": ctx.receipt.digest["chars"],
        "dropped": actor.log.dropped,
        "attempts": attempts,
        "readable_elsewhere": actor.readable_s > 0,
    }


def answering(actor: Actor) -> AttemptRecord | None:
    """Return the attempt that answers now: the last one with output of the stage that makes up the kind of stream.

    Before that, it is the one that is waited for.
    """
    stage, waited_for = _MAIN_STAGES.get(actor.kind), None
    for record in reversed(actor.ctx.attempts):
        if record.stage != stage or record.failure is not None:
            continue
        if record.first_output_ms is not None:
            return record
        waited_for = waited_for or record
    return waited_for or (actor.ctx.attempts[-1] if actor.ctx.attempts else None)


def _ms_since(began: float) -> int:
    return max(0, round((time.monotonic() - began) * 1000))
