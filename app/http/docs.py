"""What the reference page says of an endpoint beyond its row and the types that the row names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streams.events import Event
from streams.wire.errors import ServiceError
from streams.wire.model import Model


@dataclass(frozen=True, slots=True)
class OtherResponse:
    """A response that is no model, no stream and no error envelope. Without a media type it has no body."""

    what: str
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class Stream:
    """What an endpoint that answers with Server-Sent Events says in them."""

    events: Sequence[type[Event]]
    ends: Sequence[type[Model]]
    """What `end` may tell."""
    transcripts: Mapping[str, bytes]
    """Whole streams as they stand on the wire, by what each shows."""
    headers: Mapping[str, str]
    """Headers of the response, and what they tell."""


@dataclass(frozen=True, slots=True)
class Docs:
    """Nothing here changes what an endpoint does."""

    errors: Sequence[ServiceError] = ()
    """One of each kind that the handler raises. Those of the checks before it are known from the row."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Request headers of this endpoint alone, and what they are for."""
    chunked: type[Model] | None = None
    """The first JSON object of a body that goes on after it."""
    bodies: Mapping[str, Any] = field(default_factory=dict)
    """Example bodies by what each shows: JSON values; text where the body goes on after the first object."""
    stream: Stream | None = None
    answers: Mapping[int, OtherResponse] = field(default_factory=dict)
    """Responses that neither the row's reply nor the stream describes, by status."""


NO_DOCS = Docs()
