"""The lifecycle of one stream, from `start` to exactly one `end` or `error`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import structlog

from actors.runtime.context import Stop, StreamContext, StreamStopped
from actors.runtime.held_slot import HeldSlot
from actors.runtime.log_replication import LogReplicator
from actors.runtime.mailbox import (
    Attach,
    Cancel,
    Detach,
    Drain,
    Expire,
    Mailbox,
    Message,
    Replicate,
    SessionEnded,
    TakenOver,
)
from actors.runtime.report import report_crash, report_end
from streams.events import End, Event, Failed, Start, attempts_content, encode, error_content
from streams.held_back import HeldBack
from streams.kept_errors import stripped
from streams.tasks import background
from streams.wire.codec import now_ms
from streams.wire.errors import BackendUnavailable, InternalError, InvalidSession, ServiceError, Unavailable

log = structlog.get_logger()

Play = Callable[[StreamContext], Awaitable[dict[str, Any]]]
"""The coroutine function that produces the events of a stream.

A play returns the content of the `end` event, or raises a `ServiceError` for an `error` event. It cleans up when it
is cancelled. If it is cancelled with `Stop.CANCELED`, it may return normally; the stream then ends with `end`.
"""

State = Literal["hearing", "answering", "stopping", "settling"]
"""`hearing`: the input arrives. `answering`: the input is complete and the play runs. `stopping`: the play was
cancelled. `settling`: the answer is complete and is being stored."""

_LAST_REPLICATION_S = 5
_DURABLE_BEHIND_S = 0.1
"""How far the copy of a durable log may be behind while no other process reads it, to save commands."""
_RECHECK_S = 1
_DEADLINE = Expire(deadline=True)
_GRACE_OVER = Expire(deadline=False)


class Actor:
    """Owns one stream: its input, its log and its play. `run()` never raises, and runs the play in its own task.

    `slot` is released before the last event.
    """

    __slots__ = (
        "_grace",
        "_mailbox",
        "_over",
        "_play",
        "_replication",
        "_replicator",
        "_resume_grace_s",
        "_slot",
        "_stream_s",
        "_task",
        "conversation_id",
        "ctx",
        "kind",
        "log",
        "outcome",
        "readers",
        "taken_over",
    )

    def __init__(
        self,
        ctx: StreamContext,
        play: Play,
        slot: HeldSlot,
        *,
        kind: str,
        conversation_id: str | None,
        stream_s: float,
        resume_grace_s: float,
    ) -> None:
        self.ctx = ctx
        self.kind = kind
        self.conversation_id = conversation_id
        self.log = ctx.log
        self.outcome: asyncio.Future[dict[str, Any] | ServiceError] = asyncio.get_running_loop().create_future()
        """The result or the error of the play. Set after the last event."""
        self._play: Play | None = play
        self._slot = slot
        self._stream_s = stream_s
        self._resume_grace_s = resume_grace_s
        self._replicator: LogReplicator | None = None
        self._replication: background[None] | None = None
        self._over = False
        self._mailbox = Mailbox()
        self._task: asyncio.Task[Any] | None = None
        self.readers = 0
        self.taken_over = False
        """Whether another process has taken over the stream, because it considered this one dead."""
        self._grace: asyncio.TimerHandle | None = None

    @property
    def stream_id(self) -> str:
        return self.ctx.stream_id

    @property
    def readable_s(self) -> float:
        """How long the log is kept after the stream has ended, in seconds."""
        return self._slot.readable_s

    @property
    def state(self) -> State:
        if self.ctx.settled:
            return "settling"
        if self.ctx.stop is not None:
            return "stopping"
        return "answering" if self.ctx.receipt.reached("input") else "hearing"

    def send(self, message: Message) -> None:
        if isinstance(message, Attach | Detach):
            self.readers += 1 if isinstance(message, Attach) else -1
        self._mailbox.put(message)

    async def replicate(self) -> None:
        """Start to copy the log to Valkey for other processes, and wait until the existing events are copied."""
        replicator = self._replicator = self._replicator or self._new_replicator()
        if not self._over and self._may_be_replicated:
            self.send(Replicate())
            await replicator.mend()
            await replicator.caught_up()
        if self._over:  # The stream stopped its replicator when it ended, possibly before everything was copied.
            await replicator.run_again()

    async def run(self) -> None:
        self._task = asyncio.current_task()
        # Opened here, because an actor that is never started would otherwise be a reference cycle.
        self._mailbox.open(self._receive)
        deadline = asyncio.get_running_loop().call_later(self._stream_s, self._mailbox.put, _DEADLINE)
        if isinstance(self.ctx.writer, HeldBack):
            self._start_replication(behind_s=_DURABLE_BEHIND_S)
        if not self.log.last_id:
            self.ctx.say(Start())
        # This stands only if the play raises `SystemExit` or `KeyboardInterrupt`.
        outcome: dict[str, Any] | ServiceError = _stopped(None)
        try:
            outcome = await self._run_play()
            self.ctx.settled = True
            await self._release_slot()
        finally:
            deadline.cancel()
            self.ctx.receipt.mark("total")
            last_frame = self._last_frame(outcome)
            self.ctx.writer.finish(last_frame)
            self.outcome.set_result(outcome)
            self._mailbox.close()
            if self._grace is not None:
                self._grace.cancel()
            try:
                if self._replication is not None:
                    await self._replication.end_within(_LAST_REPLICATION_S)
            finally:
                if isinstance(held := self.ctx.writer, HeldBack) and not self.log.closed:
                    self._release_rest(held, last_frame)
                self._forget()

    async def _run_play(self) -> dict[str, Any] | ServiceError:
        assert self._play is not None, "run() was already called"
        try:
            return await self._play(self.ctx)
        except ServiceError as error:
            return stripped(error)  # The stack of the play refers to this actor.
        except asyncio.CancelledError:
            return _stopped(self.ctx.stop)
        except Exception as error:  # noqa: BLE001 - the stream must end with an event in every case
            report_crash(self.stream_id, self.kind, error)
            return InternalError(extra={"retryable": True})

    async def _release_slot(self) -> None:
        try:
            await self._slot.release(aborted=self.ctx.stop is Stop.ABORTED)
        except Exception:
            log.exception("stream.release_failed", stream_id=self.stream_id, kind=self.kind)

    def _release_rest(self, held: HeldBack, last_frame: bytes) -> None:
        if not self.taken_over:
            held.release(held.last_id)
            return
        # The ids of the events that are held back are those of other events in the process that has taken over.
        self.log.finish(last_frame.partition(b"\n")[2])

    def _last_frame(self, outcome: dict[str, Any] | ServiceError) -> bytes:
        """Return the encoded last event. Without one, readers would wait forever."""
        last_id = self.ctx.writer.last_id + 1
        try:
            return encode(self._last_event(outcome), last_id, now_ms())
        except Exception as error:  # noqa: BLE001 - a vendor's text may be in it
            report_crash(self.stream_id, self.kind, error)
            failed = Failed(error_content(InternalError(extra={"retryable": True}), in_full=False))
            return encode(failed, last_id, now_ms())

    def _last_event(self, outcome: dict[str, Any] | ServiceError) -> Event:
        if isinstance(outcome, ServiceError):
            self._report(outcome.error_type, message=str(outcome))
            outcome.extra.update(self.ctx.error_extra)
            return Failed(error_content(outcome, in_full=self.ctx.resources.tells_config_faults))
        self._report("canceled" if outcome.get("finish_reason") == "canceled" else "end")
        receipt = self.ctx.receipt
        content = {**outcome, "digest": receipt.digest, "latency_ms": receipt.latency_ms}
        if failed := [record.as_error_detail() for record in self.ctx.attempts if record.outcome == "failed"]:
            content["attempts"] = attempts_content(failed, in_full=self.ctx.resources.tells_config_faults)
        return End(content)

    def _report(self, outcome: str, **fields: Any) -> None:
        report_end(self.ctx, self.kind, outcome, events=self.ctx.writer.last_id + 1, **fields)

    def _receive(self, message: Message) -> None:
        match message:
            case Attach():
                self._end_grace()
            case Detach() if not self.readers and not self.log.closed:
                self._start_grace(self._resume_grace_s)
                self._start_replication()
            case Replicate():
                self._start_replication()
            case Drain():
                self._start_replication()
                self._stop(Stop.DRAINED)
            case SessionEnded():
                self._stop(Stop.SESSION_ENDED)
            case TakenOver():
                self._stop(Stop.TAKEN_OVER)
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
        if self.ctx.outlives_readers:  # Check again later: the winning strategy may clear this flag.
            self._start_grace(_RECHECK_S)
        else:
            self._stop(Stop.ABANDONED)

    def _stop(self, reason: Stop) -> bool:
        if self.ctx.stop is not None or self.ctx.settled:  # Do not cancel a play that is already cleaning up.
            return False
        assert self._task is not None, "messages arrive only after run() was called"
        self.ctx.stop = reason
        self._task.cancel()
        return True

    @property
    def _may_be_replicated(self) -> bool:
        return self.readable_s > 0 and self.ctx.stop is not Stop.ABORTED

    def _start_replication(self, *, behind_s: float = 0) -> None:
        if not self._may_be_replicated:
            return
        self._replicator = self._replicator or self._new_replicator()
        self._replicator.behind_s = behind_s
        if self._replication is None:
            self._replication = background(self._replicator.run())
            self._replication.start()

    def _new_replicator(self) -> LogReplicator:
        if not isinstance(held := self.ctx.writer, HeldBack):
            return LogReplicator(self.log, self._slot)
        return LogReplicator(
            held.written,
            self._slot,
            copied=self.log.last_id,
            release=held.release,
            on_taken=self._note_taken_over,
            may_be_succeeded=lambda: self.ctx.resources.heartbeat.may_seem_dead,
        )

    def _note_taken_over(self) -> None:
        self.taken_over = True
        self.send(TakenOver())

    def _forget(self) -> None:
        """Drop references that only a running stream needs, because the ended stream stays readable for a while."""
        self._over = True
        self._play = self._task = None
        self.ctx.forget()

    def _start_grace(self, seconds: float) -> None:
        if self._grace is None:
            loop = asyncio.get_running_loop()
            self._grace = loop.call_later(seconds, self._mailbox.put, _GRACE_OVER)

    def _end_grace(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None


def _stopped(reason: Stop | None) -> ServiceError:
    match reason:
        case Stop.DEADLINE:
            return BackendUnavailable("the stream lasted too long")
        case Stop.CANCELED | Stop.ABORTED:
            return StreamStopped("the stream was canceled")
        case Stop.SESSION_ENDED:
            return InvalidSession("the session has ended")
        case Stop.TAKEN_OVER:
            return Unavailable("another process has taken over the stream")
        case Stop.ABANDONED:
            return BackendUnavailable("the stream had no readers for too long")
        case _:
            return Unavailable("the server is draining")
