"""Kind `limits`: how much a caller of an app may ask for."""

from pydantic import Field

from storage.kinds.base import ConfigKind
from streams.wire.model import Model


class Rate(Model):
    """`count` calls in `per_s` seconds, all of them at once if need be."""

    count: int = Field(ge=1)
    per_s: float = Field(gt=0)


def _rates() -> dict[str, Rate]:
    return {
        "signup": Rate(count=20, per_s=3600),
        "server": Rate(count=200, per_s=2),
    }


class Limits(Model):
    body_bytes: int = Field(default=128 * 1024, ge=1024)
    parameters_bytes: int = Field(default=64 * 1024, ge=1024)
    """Of the first JSON value of a chunked request."""
    parameters_s: float = Field(default=10, gt=0)
    input_idle_s: float = Field(default=30, gt=0)
    input_total_s: float = Field(default=600, gt=0)
    text_bytes: int = Field(default=32 * 1024, ge=1)
    audio_bytes: int = Field(default=10 * 1024 * 1024, ge=1)
    """Of decoded audio input."""
    tts_characters: int = Field(default=4096, ge=1)
    streams_per_process: int = Field(default=10_000, ge=1)
    streams_per_app: int = Field(default=100_000, ge=1)
    streams_per_user: int = Field(default=4, ge=1)
    readers_per_user: int = Field(default=32, ge=1)
    """Event streams that one process sends to a user at once. At least `streams_per_user` are allowed."""
    readers_per_process: int = Field(default=20_000, ge=1)
    """Event streams that one process sends at once. At least `streams_per_process` are allowed."""
    stream_s: float = Field(default=600, gt=0)
    answer_bytes: int = Field(default=1024 * 1024, ge=1024)
    """Of one answer's text: a longer one ends there, with finish reason `length`."""
    resume_grace_s: float = Field(default=60, ge=0)
    """How long a stream goes on that nobody reads."""
    readable_s: float = Field(default=120, ge=0)
    """How long a stream can be read again once it has ended."""
    log_bytes: int = Field(default=8 * 1024 * 1024, ge=64 * 1024)
    """Of the events that one stream keeps for readers who come back."""
    lag_bytes: int = Field(default=1024 * 1024, ge=64 * 1024)
    """What a reader may leave unread before its stream waits for it."""
    send_timeout_s: float = Field(default=30, gt=0)
    ping_after_s: float = Field(default=15, gt=0)
    rates: dict[str, Rate] = Field(default_factory=_rates)
    """By the name of the limit in the route table; a name that is absent has its default."""

    def rate(self, name: str) -> Rate | None:
        return self.rates.get(name) or _rates().get(name)


LIMITS = ConfigKind("limits", "Limits", Limits, singleton=True)
