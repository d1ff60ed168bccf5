"""The faults of the sandbox, and how the API key of a call selects them.

A key is `sandbox` followed by comma-separated options `name=value`, with percent-encoded values:
`sandbox,fault=cut_mid_stream,position=before,rate=0.05,seed=7`. Any other key is valid and selects no fault, except
for an empty key and `wrong`, which are refused.
"""

import random
from enum import StrEnum
from typing import Annotated, Literal, Self
from urllib.parse import quote, unquote

from pydantic import BeforeValidator, Field, ValidationError

from streams.wire.errors import InvalidParameter
from streams.wire.model import Model, faults

_PREFIX = "sandbox"


class Fault(StrEnum):
    """The faults up to `REDIRECT` replace the answer; the others occur within it."""

    REFUSE = "refuse"
    """The connection is reset before the response, because a listener cannot refuse a single client."""
    UNAUTHORIZED = "unauthorized"
    RATE_LIMITED = "rate_limited"
    OUT_OF_QUOTA = "out_of_quota"
    SERVER_ERROR = "server_error"
    UNAVAILABLE = "unavailable"
    HANG_BEFORE_HEADERS = "hang_before_headers"
    WRONG_CONTENT_TYPE = "wrong_content_type"
    REDIRECT = "redirect"
    HANG_BEFORE_OUTPUT = "hang_before_output"
    STALL_MID_STREAM = "stall_mid_stream"
    CUT_MID_STREAM = "cut_mid_stream"
    MALFORMED_FRAME = "malformed_frame"
    ERROR_INSIDE_200 = "error_inside_200"
    EMPTY_ANSWER = "empty_answer"
    HUGE_ANSWER = "huge_answer"
    """A complete answer is valid, but padded to more than 1 MiB."""
    SLOW_DRIP = "slow_drip"
    """Outputs are sent slowly. At position 0, chat models send endless frames without output instead."""


REFUSALS = frozenset(
    {Fault.UNAUTHORIZED, Fault.RATE_LIMITED, Fault.OUT_OF_QUOTA, Fault.SERVER_ERROR, Fault.UNAVAILABLE}
)
"""Faults with an error response, which differs between vendors."""


def _outputs(position: object) -> object:
    return {"before": 0, "after": 1}.get(position, position) if isinstance(position, str) else position


class KeyOptions(Model, extra="forbid"):
    """The options in a key, which determine how a call is answered."""

    name: str = _PREFIX
    """The name of the call in the bill."""
    fault: Fault | None = Field(default=None, strict=False)
    position: Annotated[int, BeforeValidator(_outputs), Field(ge=0)] = 1
    """The number of outputs before the fault; `before` is 0, `after` is 1. It occurs at the end of the answer at
    the latest."""
    rate: float = Field(default=1, ge=0, le=1)
    """The share of calls that have the fault."""
    seed: int = 0
    """The random seed. A key has the same sequence of faults in every sandbox."""
    skip: int = Field(default=0, ge=0)
    """The number of calls with the key before the first one that has the fault."""
    times: int | None = Field(default=None, ge=0)
    """The number of calls with the key that have the fault; later calls have none. None: no limit."""
    delay_ms: int = Field(default=0, ge=0)
    """Time before the first output."""
    pace_ms: int = Field(default=0, ge=0)
    """Time between two outputs."""
    retry_after_s: float = Field(default=1, ge=0)
    """The retry time in responses to rate limits and overload."""
    text: str | None = None
    """The transcript of a recognizer or the answer of a model. If absent, `content` derives it from the request."""
    events: str | None = None
    """The body of a model's streamed answer, which is sent as it is, event by event."""
    content_type: str = "text/event-stream"
    """The media type of `events`."""
    odd: str | None = None
    """A JSON list of values that a client should skip. Streamed speech, transcripts and OpenAI's chats have all of
    them, and an empty event, before each output and after the last one. Complete answers have them in lists."""
    refuses: Literal["stream_options", "repeated_roles"] | None = None
    """What a model refuses, as servers that offer OpenAI's protocol do."""
    context_tokens: int = Field(default=128_000, ge=1)
    """How long the messages to a model may be."""
    refusal: str | None = None
    """How OpenAI's protocol refuses what `refuses` or `context_tokens` refuse: the body of the response, instead of
    the words of vLLM and of OpenAI."""
    refusal_status: int = Field(default=400, ge=200, le=599)
    """The status of a `refusal`. With 200, it is an event of a stream."""

    @classmethod
    def of_key(cls, key: str) -> Self:
        """Parse the options in `key`. Raise `InvalidParameter` if one is invalid."""
        head, *parts = key.split(",")
        if head != _PREFIX:
            return cls(name=f"{key[:4]}…")
        values = {name: unquote(value) for name, _, value in (part.partition("=") for part in parts)}
        try:
            return cls.model_validate_strings(values, strict=False)
        except ValidationError as error:
            path, reason = next(faults(error))
            raise InvalidParameter(f"sandbox key: {path} {reason}") from None

    def has_fault(self, nth_call: int) -> bool:
        """Return whether call number `nth_call` of a key, counted from 0, has the fault."""
        if self.fault is None or nth_call < self.skip:
            return False
        if self.times is not None and nth_call >= self.skip + self.times:
            return False
        rng = random.Random(f"{self.seed} {nth_call}")  # noqa: S311 - a repeatable choice, not used for security
        return self.rate >= 1 or rng.random() < self.rate


def key_of(**key_options: object) -> str:
    """Return the key with these options, for example `key_of(fault="cut_mid_stream", text="Hello, you")`."""
    return ",".join([_PREFIX, *(f"{name}={quote(str(value), safe='')}" for name, value in key_options.items())])
