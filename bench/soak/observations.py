"""What the callers of a soak observe: outcomes of streams, refused requests, acknowledged turns."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["text", "audio", "tts", "leave", "cancel", "again"]
"""`leave`: the caller disconnects and resumes the stream later. `again`: the caller loses the connection and
repeats the request with the same `Idempotency-Key`."""
Operation = Literal["begin", "resume", "cancel"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that is not an event stream. Times are seconds since the beginning of the load."""

    operation: Operation
    begin_s: float
    end_s: float
    status: int
    """The HTTP status; 0 if there was no response."""
    error_type: str
    """The error type in the envelope; empty if the response has none."""
    detail: str
    request_id: str
    stream_id: str = ""
    retry_after: str = ""
    """The header `Retry-After`, if there is one."""


@dataclass(slots=True)
class Stream:
    """One stream as its caller observed it, over all its responses."""

    kind: Kind
    user: int
    begin_s: float
    number: int = 0
    """The number of the stream among those of its user."""
    request_id: str = ""
    """The id of the request that began the stream."""
    stream_id: str = ""
    conversation_id: str = ""
    end_s: float = 0
    outcome: str = ""
    """`end`, or `error` followed by the error type; empty without a terminal event."""
    message: str = ""
    """The message of the `error`."""
    unnumbered: bool = False
    """Whether the terminal event has no id, because the stream's process no longer exists."""
    cut_at_s: list[float] = field(default_factory=list)
    """The times at which a response broke off while the caller was reading."""
    resumes: int = 0
    node: str = ""
    """The node that answered, if the proxy adds its name."""
    first_stream_id: str = ""
    """The id of the first stream, if the repeated request began another one."""
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AcknowledgedTurn:
    """A turn that ended with `end`, and what its record must contain."""

    user: int
    conversation_id: str
    record_id: int
    stream_id: str
    request_id: str
    at_s: float
    status: str
    """`complete`, or `interrupted` if the caller cancelled the stream."""
    user_text: str
    text_sha256: str
    """The hash of the received answer, without text that a restart discarded."""


@dataclass(slots=True)
class Observations:
    """All observations of the callers. `now_s` returns the seconds since the beginning of the load."""

    now_s: Callable[[], float]
    streams: list[Stream] = field(default_factory=list)
    """The streams that have ended or were given up."""
    answers: list[Answer] = field(default_factory=list)
    turns: list[AcknowledgedTurn] = field(default_factory=list)
    live: int = 0
    """Number of streams that callers are reading or about to resume."""
    events: int = 0
    started: Counter[str] = field(default_factory=Counter)
    """Number of streams begun, by kind."""
