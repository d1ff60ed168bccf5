"""One stream's life, from `start` to exactly one `end` or `error`. The rules of its life are only here."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import structlog

from actors.context import Stop, StreamContext
from actors.mailbox import Attach, Cancel, Detach, Drain, Expire, Mailbox, Message, Spill
from actors.report import report_crash, report_end
from actors.spiller import Spiller
from streams.events import End, Event, Failed, Start, attempts_content, encode, error_content
from streams.tasks import background
from streams.wire.codec import now_ms
from streams.wire.errors import ServiceError, Unavailable

log = structlog.get_logger()

Play = Callable[[StreamContext], Awaitable[dict[str, Any]]]
"""A play returns what `end` tells, raises a `ServiceError` for `error`, and cleans up when it is cancelled.

Cancelled for `Stop.CANCELED` it may return as well: then the stream ends with `end`."""

State = Literal["hearing", "answering", "stopping", "settling"]
"""Its input comes; its play goes on; it was told to stop; all is said and is being kept."""

_LAST_SPILL_S = 5
_LOOK_AGAIN_S = 1
_DEADLINE = Expire(deadline=True)
_GRACE_OVER = Expire(deadline=False)


class Actor:
    """Owns one stream: its input, its log, its play. `run()` never raises; its task is the play's.

    `release` gives back what the stream holds (its turn, its place); it is awaited before the last event.
    `spiller` makes what keeps the log in Valkey, once that is called for.
    """

    __slots__ = (
        "_grace",
        "_mailbox",
        "_over",
        "_play",
        "_release",
        "_resume_grace_s",
        "_spill",
        "_spiller",
        "_spiller_of",
        "_stream_s",
        "_task",
        "conversation_id",
        "ctx",
        "kind",
        "log",
        "outcome",
        "readable_s",
        "readers",
    )

    def __init__(
        self,
        ctx: StreamContext,
        play: Play,
        *,
        kind: str,
        conversation_id: str | None,
        spiller: Callable[[], Spiller],
        release: Callable[[], Awaitable[None]],
        stream_s: float,
        resume_grace_s: float,
        readable_s: float,
    ) -> None:
        self.ctx = ctx
        self.kind = kind
        self.conversation_id = conversation_id
        self.log = ctx.log
        self.outcome: asyncio.Future[dict[str, Any] | ServiceError] = asyncio.get_running_loop().create_future()
        """What the play returned or raised, once the last event is there."""
        self._play: Play | None = play
        self._release: Callable[[], Awaitable[None]] | None = release
        self._stream_s = stream_s
        self._resume_grace_s = resume_grace_s
        self.readable_s = readable_s
        """For how long its log is kept once it has ended."""
        self._spiller_of = spiller
        self._spiller: Spiller | None = None
        self._spill: background[None] | None = None
        self._over = False
        self._mailbox = Mailbox(self._attend)
        self._task: asyncio.Task[Any] | None = None
        self.readers = 0
        self._grace: asyncio.TimerHandle | None = None

    @property
    def stream_id(self) -> str:
        return self.ctx.stream_id

    @property
    def state(self) -> State:
        if self.ctx.settled:
            return "settling"
        if self.ctx.stop is not None:
            return "stopping"
        return "answering" if self.ctx.receipt.reached("input") else "hearing"

    def tell(self, message: Message) -> None:
        if isinstance(message, Attach | Detach):
            self.readers += 1 if isinstance(message, Attach) else -1
        self._mailbox.tell(message)

    async def spilled(self) -> None:
        """Have what was said so far kept where other processes find it, and what follows."""
        spiller = self._spiller = self._spiller or self._spiller_of()
        if not self._over and self._may_be_spilled:
            self.tell(Spill())
            await spiller.caught_up()
        if self._over:  # nobody else goes on with what was given up when it ended
            await spiller.run_again()

    async def run(self) -> None:
        self._task = asyncio.current_task()
        deadline = asyncio.get_running_loop().call_later(self._stream_s, self._mailbox.tell, _DEADLINE)
        self.ctx.say(Start())
        outcome: dict[str, Any] | ServiceError = _stopped(None)
        try:
            outcome = await self._played()
            self.ctx.settled = True
            await self._let_go()
        finally:
            deadline.cancel()
            self.ctx.receipt.mark("total")
            self.log.finish(encode(self._last_event(outcome), self.log.last_id + 1, now_ms()))
            self.outcome.set_result(outcome)
            self._mailbox.close()
            if self._grace is not None:
                self._grace.cancel()
            try:
                if self._spill is not None:
                    await self._spill.end_within(_LAST_SPILL_S)
            finally:
                self._forget()

    async def _played(self) -> dict[str, Any] | ServiceError:
        assert self._play is not None, "it is played once"
        try:
            return await self._play(self.ctx)
        except ServiceError as error:
            return error
        except asyncio.CancelledError:
            return _stopped(self.ctx.stop)
        except Exception as error:  # noqa: BLE001 - whatever it is, the stream ends as it should
            report_crash(self.stream_id, self.kind, error)
            return ServiceError("the server failed", extra={"retryable": True})

    async def _let_go(self) -> None:
        assert self._release is not None, "the play is over, not the stream"
        try:
            await self._release()
        except Exception:
            log.exception("stream.kept_its_place", stream_id=self.stream_id, kind=self.kind)

    def _last_event(self, outcome: dict[str, Any] | ServiceError) -> Event:
        if isinstance(outcome, ServiceError):
            self._report(outcome.error_type, message=str(outcome))
            outcome.extra.update(self.ctx.about)
            return Failed(error_content(outcome))
        self._report("canceled" if outcome.get("finish_reason") == "canceled" else "end")
        receipt = self.ctx.receipt
        told = {**outcome, "digest": receipt.digest, "latency_ms": receipt.latency_ms}
        if failed := [record.as_error_detail() for record in self.ctx.attempts if record.outcome == "failed"]:
            told["attempts"] = attempts_content(failed)
        return End(told)

    def _report(self, outcome: str, **fields: Any) -> None:
        report_end(self.ctx, self.kind, outcome, events=self.log.last_id + 1, **fields)

    def _attend(self, message: Message) -> None:
        match message:
            case Attach():
                self._end_grace()
            case Detach() if not self.readers and not self.log.closed:
                self._begin_grace(self._resume_grace_s)
                self._begin_to_spill()
            case Spill():
                self._begin_to_spill()
            case Drain():
                self._begin_to_spill()
                self._stop(Stop.DRAINED)
            case Cancel():
                if self._stop(Stop.ABORTED if message.aborted else Stop.CANCELED):
                    self.ctx.heard_ms = message.heard_ms
            case Expire():
                self._expire(message)

    def _expire(self, message: Expire) -> None:
        if message.deadline:
            self._stop(Stop.DEADLINE)
            return
        self._grace = None
        if self.readers:
            return
        if self.ctx.outlives_readers:  # until one answers whose strategy does not
            self._begin_grace(_LOOK_AGAIN_S)
        else:
            self._stop(Stop.ABANDONED)

    def _stop(self, why: Stop) -> bool:
        if self.ctx.stop is not None or self.ctx.settled:  # a play that is cleaning up is not disturbed
            return False
        assert self._task is not None, "it is told nothing before it runs"
        self.ctx.stop = why
        self._task.cancel()
        return True

    @property
    def _may_be_spilled(self) -> bool:
        return self.readable_s > 0 and self.ctx.stop is not Stop.ABORTED

    def _begin_to_spill(self) -> None:
        if self._spill is None and self._may_be_spilled:
            self._spiller = self._spiller or self._spiller_of()
            self._spill = background(self._spiller.run())
            self._spill.start()

    def _forget(self) -> None:
        """Let go of what only a running stream needs: its readers may be given what it said for a while yet."""
        self._over = True
        self._play = self._release = self._task = None
        self.ctx.forget()

    def _begin_grace(self, seconds: float) -> None:
        if self._grace is None:
            loop = asyncio.get_running_loop()
            self._grace = loop.call_later(seconds, self._mailbox.tell, _GRACE_OVER)

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
