"""The context of a stream, which is all that a play may use. It is independent of HTTP."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from actors.clients.strategies import Strategies
from actors.runtime.receipt import Receipt
from actors.synthesis.flight import Flights
from storage.accounts.ended_sessions import SessionKey
from storage.clock import AppClock
from storage.conversations.attempts import AttemptRow
from storage.conversations.speech_cache import SpeechCache
from storage.conversations.turns import TurnWriter
from storage.objects import ObjectStore
from storage.postgres.database import Database
from storage.processes.heartbeats import Heartbeat
from storage.valkey.client import Valkey
from streams.events import Event, encode
from streams.held_back import HeldBack
from streams.input_buffer import InputBuffer
from streams.log import EventLog
from streams.wire.codec import now_ms
from streams.wire.errors import Conflict
from vendors.calls.attempts import AttemptRecord
from vendors.speech.conversion import AudioConverter


class Owner(NamedTuple):
    """The app and the user that a stream belongs to."""

    app_id: str
    user_id: str


class StreamTraces(Protocol):
    """Receives each stream when it has ended."""

    def add(self, ctx: "StreamContext", kind: str, outcome: str) -> None:
        """Trace a stream. This must be fast and not raise."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The long-lived objects through which plays reach the stores and the vendors."""

    database: Database
    objects: ObjectStore
    strategies: Strategies
    valkey: Valkey
    speech_cache: SpeechCache
    flights: Flights
    heartbeat: Heartbeat
    turns: TurnWriter
    converter: AudioConverter
    clock: AppClock
    traces: StreamTraces | None
    tells_config_faults: bool = False
    """Whether errors say to clients what is wrong with a config, as in development."""


class Stop(Enum):
    """The reason why a play is cancelled."""

    CANCELED = "canceled"
    """The client cancelled the stream."""
    ABORTED = "aborted"
    """The client disconnected before its input was complete."""
    ABANDONED = "abandoned"
    """The stream had no reader for the grace time."""
    DEADLINE = "deadline"
    """The stream reached its maximum duration."""
    SESSION_ENDED = "session_ended"
    """The session that started the stream has ended."""
    DRAINED = "drained"
    """The process is shutting down."""
    TAKEN_OVER = "taken_over"
    """Another process has taken over the stream, because it considered this one dead."""


class StreamStopped(Conflict):
    """The stream was cancelled."""


class StreamContext:
    """One stream as its play sees it."""

    __slots__ = (
        "answer_bytes",
        "attempts",
        "error_extra",
        "heard_ms",
        "idempotency_key",
        "input",
        "log",
        "max_stream_s",
        "outlives_readers",
        "owner",
        "receipt",
        "request_id",
        "resources",
        "revise",
        "save",
        "session",
        "settled",
        "stop",
        "stream_id",
        "traceparent",
        "writer",
    )

    def __init__(
        self,
        stream_id: str,
        owner: Owner,
        *,
        request_id: str,
        resources: Resources,
        receipt: Receipt,
        log: EventLog,
        max_stream_s: float,
        answer_bytes: int,
        session: SessionKey | None = None,
        traceparent: str = "",
        idempotency_key: tuple[str, str] | None = None,
        save: Callable[[bytes], Awaitable[None]] | None = None,
    ) -> None:
        self.stream_id = stream_id
        self.owner = owner
        self.session = session
        """The session that started the stream; `None` if an app server did."""
        self.request_id = request_id
        self.idempotency_key = idempotency_key
        """The `Idempotency-Key` of the request with its fingerprint."""
        self.resources = resources
        self.receipt = receipt
        self.input = InputBuffer()
        self.max_stream_s = max_stream_s
        """The maximum duration of any stream of the app, in seconds."""
        self.answer_bytes = answer_bytes
        self.stop: Stop | None = None
        self.heard_ms: int | None = None
        """How much of the audio was played when the client cancelled, in ms; `None` if it did not report that."""
        self.revise: Callable[[int], Awaitable[None]] | None = None
        """Truncates the stored answer to the given ms of audio. Called after the stream has ended."""
        self.settled = False
        """Whether the answer is complete and only has to be stored. From then on the play is not cancelled."""
        self.outlives_readers = False
        """Whether the play continues to its end even if no reader is left."""
        self.error_extra: dict[str, Any] = {}
        """Additional fields of `extra` in the `error` event, if the stream ends with one."""
        self.attempts: list[AttemptRecord] = []
        """The vendor calls made for this stream, in order."""
        self.traceparent = traceparent
        """The parent of the stream's trace, as the client sent it."""
        self.log = log
        """The events that readers can have."""
        self.writer: EventLog | HeldBack = HeldBack(log) if save is not None else log
        """Where events are written. Those of a durable stream reach the log once they are copied to Valkey."""
        self.save = save
        """Saves what another process needs to continue or to store the stream. Only for durable streams."""

    def arrived_ms(self) -> int:
        """Return the time at which the request's head arrived, by the clock of the machine, in ms."""
        return now_ms() - round((time.monotonic() - self.receipt.arrived) * 1000)

    def attempt_rows(self) -> list[AttemptRow]:
        """Return the attempts as rows, in the order in which they began."""
        arrived = self.receipt.arrived
        return [
            {
                "number": number,
                "stage": record.stage,
                "strategy": record.strategy,
                "vendor": record.vendor,
                "outcome": record.outcome,
                "message": record.failure.message if record.failure else "",
                "first_output_ms": record.first_output_ms,
                "elapsed_ms": record.elapsed_ms,
                "input_unit": (usage := record.usage).input_token,
                "output_unit": usage.output_token,
                "price": str(record.cost),
                "usage_source": record.meter.source,
                "model": record.model,
                # Attempts of a process that has died have no start by the clock of this one.
                "started_ms": max(0, round((record.started_at - arrived) * 1000)) if record.started_at else None,
            }
            for number, record in enumerate(self.attempts, 1)
        ]

    def forget(self) -> None:
        """Drop references that only a running stream needs."""
        self.input.fail(StreamStopped("the stream has ended"))  # Wake tasks that still wait for the input.
        self.input = _EMPTY_INPUT
        self.attempts = []

    def say(self, event: Event) -> bool:
        """Encode `event` and append it to the log without waiting.

        Return `False` if a reader lags too far behind: then call `wait_for_room` before the next event.
        """
        if output := event.output():
            self.receipt.add_output(output)
        writer = self.writer
        return writer.put(encode(event, writer.last_id + 1, now_ms()))

    async def wait_for_room(self) -> None:
        """Wait until no attached reader lags too far behind."""
        await self.writer.wait_for_room()

    async def emit(self, event: Event) -> None:
        """Append `event` to the log and wait until no reader lags too far behind."""
        if not self.say(event):
            await self.writer.wait_for_room()


_EMPTY_INPUT = InputBuffer()
_EMPTY_INPUT.end()
