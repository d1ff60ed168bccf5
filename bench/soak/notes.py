"""What the callers of a soak note down: how streams ended, answers that were no stream, acknowledged turns."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["text", "audio", "tts", "leave", "cancel", "again"]
"""`leave`: the caller goes and reads on later. `again`: it is cut and asks again under its `Idempotency-Key`."""
Asked = Literal["begin", "resume", "cancel"]


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP answer that is no event stream. Times are seconds from the beginning of the load."""

    asked: Asked
    begin_s: float
    end_s: float
    status: int
    """0: there was no answer."""
    error_type: str
    """Of the envelope; empty where the answer has none."""
    detail: str
    request_id: str
    stream_id: str = ""


@dataclass(slots=True)
class Stream:
    """One stream as its caller saw it, over all responses."""

    kind: Kind
    user: int
    begin_s: float
    request_id: str = ""
    """Of the request that began it."""
    stream_id: str = ""
    conversation_id: str = ""
    end_s: float = 0
    outcome: str = ""
    """`end`, or `error` and its type; empty: it has no terminal event."""
    message: str = ""
    """Of the `error`."""
    unnumbered: bool = False
    """Whether the terminal event had no id: the process of the stream was gone."""
    cut_at_s: list[float] = field(default_factory=list)
    """When a response ended before the stream did, though the caller was still reading."""
    resumes: int = 0
    first_stream_id: str = ""
    """The stream that was cut, where another one answered when the same was asked for again."""
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AcknowledgedTurn:
    """A turn that ended with `end`: what its record must hold."""

    user: int
    conversation_id: str
    record_id: int
    stream_id: str
    request_id: str
    at_s: float
    status: str
    """`complete`, or `interrupted` where the caller cancelled it."""
    user_text: str
    text_sha256: str
    """Of the answer as it was received, without what a restart made void."""


@dataclass(slots=True)
class Docs:
    """Everything that was noted. `now_s` is the time since the beginning of the load."""

    now_s: Callable[[], float]
    streams: list[Stream] = field(default_factory=list)
    """Those that have ended, or were given up."""
    answers: list[Answer] = field(default_factory=list)
    turns: list[AcknowledgedTurn] = field(default_factory=list)
    live: int = 0
    """Streams that callers read at the moment, or are about to resume."""
    events: int = 0
    started: Counter[str] = field(default_factory=Counter)
    """Streams by kind."""
