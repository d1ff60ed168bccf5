"""Documentation of an endpoint for the reference page, in addition to its row and its types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streams.events import Event
from streams.wire.errors import ServiceError
from streams.wire.model import Model


@dataclass(frozen=True, slots=True)
class OtherResponse:
    """A response that is not a model, a stream or an error. Without a media type it has no body."""

    description: str
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class Stream:
    """Documentation of a response that is a stream of Server-Sent Events."""

    events: Sequence[type[Event]]
    ends: Sequence[type[Model]]
    """The models of the content of `end`."""
    transcripts: Mapping[str, bytes]
    """Example streams as sent on the wire, keyed by their description."""
    headers: Mapping[str, str]
    """Response headers and their descriptions."""
    errors: tuple[type[ServiceError], ...]
    """The errors that an `error` event may report."""


@dataclass(frozen=True, slots=True)
class Docs:
    """Documentation of one endpoint. It does not change what the endpoint does."""

    headers: Mapping[str, str] = field(default_factory=dict)
    """Request headers specific to this endpoint, and their descriptions."""
    bodies: Mapping[str, Any] = field(default_factory=dict)
    """Example bodies, keyed by their description: JSON values, or text if the handler takes a `Chunked` body."""
    stream: Stream | None = None
    answers: Mapping[int, OtherResponse] = field(default_factory=dict)
    """Responses that neither the reply model nor `stream` describes, by status, or a text for the reply at 200."""


NO_DOCS = Docs()
