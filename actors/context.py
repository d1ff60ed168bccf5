"""What a play may use. Nothing of HTTP."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from actors.receipt import Receipt
from actors.speech_flight import Flights
from actors.strategies import Strategies
from storage.heartbeats import Heartbeat
from storage.objects import ObjectStore
from storage.postgres import Database
from storage.redis import Valkey
from storage.speech_cache import SpeechCache
from storage.turns import TurnWriter
from streams.events import Event, encode
from streams.log import EventLog
from streams.tape import Tape
from streams.wire.codec import now_ms
from streams.wire.errors import InvalidOperation
from vendors.fallback import AttemptRecord


class Owner(NamedTuple):
    """Whose stream it is."""

    app_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class Resources:
    """The long-lived things that plays reach the outside through."""

    database: Database
    objects: ObjectStore
    strategies: Strategies
    valkey: Valkey
    speech_cache: SpeechCache
    flights: Flights
    heartbeat: Heartbeat
    turns: TurnWriter


class Stop(Enum):
    """Why a play is cancelled."""

    CANCELED = "canceled"
    ABORTED = "aborted"
    ABANDONED = "abandoned"
    DEADLINE = "deadline"
    DRAINED = "drained"


class StreamContext:
    """One stream, as its play sees it."""

    __slots__ = (
        "about",
        "answer_bytes",
        "attempts",
        "heard_ms",
        "input",
        "log",
        "longest_s",
        "on_end",
        "outlives_readers",
        "owner",
        "receipt",
        "request_id",
        "resources",
        "revise",
        "settled",
        "stop",
        "stream_id",
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
        longest_s: float,
        answer_bytes: int,
        on_end: "OnEnd | None" = None,
    ) -> None:
        self.stream_id = stream_id
        self.owner = owner
        self.request_id = request_id
        self.resources = resources
        self.receipt = receipt
        self.input = Tape()
        self.longest_s = longest_s
        """No stream of the app lasts longer."""
        self.answer_bytes = answer_bytes
        self.stop: Stop | None = None
        self.heard_ms: int | None = None
        """How much of the audio was played when the client cancelled, where it says so."""
        self.revise: Callable[[int], Awaitable[None]] | None = None
        """Cuts what was kept of the answer to what was heard, once the stream has ended."""
        self.settled = False
        """Whether the play has all that it will say, and only keeps it: it is stopped no more."""
        self.outlives_readers = False
        """Whether it plays to its end though nobody will read it."""
        self.about: dict[str, Any] = {}
        """What the last event tells where it is an `error`."""
        self.attempts: list[AttemptRecord] = []
        """What vendors were asked for this stream, in the order of asking."""
        self.on_end = on_end
        """Told once, when the stream has ended."""
        self.log = log

    def forget(self) -> None:
        """Let go of what only a running stream needs."""
        self.input.fail(InvalidOperation("the stream has ended"))  # who waits for its end must not wait for ever
        self.input = _OVER
        self.attempts = []
        self.on_end = None

    def say(self, event: Event) -> bool:
        """Say `event`: encoded once, kept for readers. Whether they take more: else wait for `room`."""
        if said := event.said():
            self.receipt.said(said)
        log = self.log
        return log.put(encode(event, log.last_id + 1, now_ms()))

    async def room(self) -> None:
        """Wait while a reader lags too far."""
        await self.log.room()

    async def emit(self, event: Event) -> None:
        """Say `event`, waiting for room for more."""
        if not self.say(event):
            await self.log.room()


_OVER = Tape()
_OVER.end()

OnEnd = Callable[[StreamContext, str, str], None]
"""Takes a stream that has ended, its kind and its outcome. It is quick, and raises nothing."""
