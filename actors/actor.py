"""One stream's life, from `start` to exactly one `end` or `error`. The rules of its life are only here."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from prometheus_client import Counter

from actors.context import Stop, StreamContext
from actors.mailbox import Attach, Cancel, Detach, Drain, Expire, Mailbox, Played
from streams.events import End, Event, Failed, Start, encode, error_content
from streams.log import EventLog
from streams.tasks import background
from streams.wire.codec import now_ms
from streams.wire.errors import ServiceError, Unavailable

log = structlog.get_logger()
ENDED = Counter("parley_streams_ended", "Streams by kind and how they ended", ["kind", "outcome"])

Play = Callable[[StreamContext], Awaitable[dict[str, Any]]]
"""A play returns what `end` tells, raises a `ServiceError` for `error`, and cleans up when it is cancelled.

Cancelled for `Stop.CANCELED` it may return as well: then the stream ends with `end`."""


class Actor:
    """Owns one stream: its input, its log, its play. `run()` never raises.

    `release` gives back what the stream holds (its turn, its place); it is awaited before the last event.
    """

    def __init__(
        self,
        ctx_of: Callable[[Callable[[Event], Awaitable[None]]], StreamContext],
        play: Play,
        *,
        kind: str,
        log: EventLog,
        release: Callable[[], Awaitable[None]],
        stream_s: float,
        resume_grace_s: float,
    ) -> None:
        self.ctx = ctx_of(self._emit)
        self.kind = kind
        self.log = log
        self._play = play
        self._release = release
        self._stream_s = stream_s
        self._resume_grace_s = resume_grace_s
        self._mailbox = Mailbox()
        self._readers = 0
        self._grace: asyncio.TimerHandle | None = None

    @property
    def stream_id(self) -> str:
        return self.ctx.stream_id

    def tell(self, message: Attach | Detach | Cancel | Drain) -> None:
        self._mailbox.tell(message)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.call_later(self._stream_s, self._mailbox.tell, Expire(deadline=True))
        try:
            await self._emit(Start())
            async with background(self._played()) as play:
                await self._attend(play)
        finally:
            deadline.cancel()
            if self._grace is not None:
                self._grace.cancel()

    async def _emit(self, event: Event) -> None:
        await self.log.append(encode(event, self.log.last_id + 1, now_ms()))

    async def _played(self) -> None:
        outcome: dict[str, Any] | ServiceError = _stopped(None)
        try:
            outcome = await self._outcome()
            self.ctx.settled = True
            await self._release()
        except Exception:
            log.exception("stream.kept_its_place", stream_id=self.stream_id, kind=self.kind)
        finally:
            self.ctx.receipt.mark("total")
            self.log.finish(encode(self._last_event(outcome), self.log.last_id + 1, now_ms()))
            self._mailbox.tell(Played())

    async def _outcome(self) -> dict[str, Any] | ServiceError:
        try:
            return await self._play(self.ctx)
        except ServiceError as error:
            return error
        except asyncio.CancelledError:
            return _stopped(self.ctx.stop)
        except Exception:
            log.exception("stream.crashed", stream_id=self.stream_id, kind=self.kind)
            return ServiceError("the server failed", extra={"retryable": True})

    def _last_event(self, outcome: dict[str, Any] | ServiceError) -> Event:
        if isinstance(outcome, ServiceError):
            self._report(outcome.error_type, message=str(outcome))
            outcome.extra.update(self.ctx.about)
            return Failed(error_content(outcome))
        self._report("canceled" if outcome.get("finish_reason") == "canceled" else "end")
        receipt = self.ctx.receipt
        return End({**outcome, "digest": receipt.digest, "latency_ms": receipt.latency_ms})

    def _report(self, outcome: str, **fields: Any) -> None:
        ENDED.labels(self.kind, outcome).inc()
        log.info(
            "stream.ended",
            stream_id=self.stream_id,
            request_id=self.ctx.request_id,
            kind=self.kind,
            app_id=self.ctx.owner.app_id,
            user_id=self.ctx.owner.user_id,
            outcome=outcome,
            events=self.log.last_id + 1,
            **self.ctx.receipt.latency_ms,
            **fields,
        )

    async def _attend(self, play: asyncio.Task[None]) -> None:
        while True:
            match await self._mailbox.next():
                case Played():
                    return
                case Attach():
                    self._readers += 1
                    self._end_grace()
                case Detach():
                    self._readers -= 1
                    self._begin_grace()
                case Cancel(aborted=aborted):
                    self._stop(play, Stop.ABORTED if aborted else Stop.CANCELED)
                case Drain():
                    self._stop(play, Stop.DRAINED)
                case Expire(deadline=deadline):
                    if deadline or not self._readers:
                        self._stop(play, Stop.DEADLINE if deadline else Stop.ABANDONED)

    def _stop(self, play: asyncio.Task[None], why: Stop) -> None:
        if self.ctx.stop is None and not self.ctx.settled:  # a play that is cleaning up is not disturbed
            self.ctx.stop = why
            play.cancel()

    def _begin_grace(self) -> None:
        if not self._readers and self._grace is None:
            loop = asyncio.get_running_loop()
            self._grace = loop.call_later(self._resume_grace_s, self._mailbox.tell, Expire(deadline=False))

    def _end_grace(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None


def _stopped(why: Stop | None) -> ServiceError:
    match why:
        case Stop.DEADLINE:
            return ServiceError("the stream lasted too long", error_type="backend unavailable")
        case Stop.CANCELED | Stop.ABORTED:
            return ServiceError("the stream was canceled", error_type="invalid_operation")
        case Stop.ABANDONED:
            return ServiceError("nobody read the stream", error_type="backend unavailable")
        case _:
            return Unavailable("the server is draining", retry_after_s=1)
