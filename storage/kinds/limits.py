"""Kind `limits`: how much a caller of an app may ask for."""

from pydantic import Field

from storage.kinds.base import DAY_S, HOUR_S, MIB, ConfigKind
from streams.wire.model import Model


class Rate(Model):
    """`count` calls in `per_s` seconds, all of them at once if need be."""

    count: int = Field(ge=1, le=1_000_000)
    per_s: float = Field(ge=0.001, le=366 * DAY_S)


def _rates() -> dict[str, Rate]:
    return {
        "signup": Rate(count=20, per_s=3600),
        "server": Rate(count=200, per_s=2),
    }


class Limits(Model):
    body_bytes: int = Field(default=128 * 1024, ge=1024, le=64 * MIB)
    parameters_bytes: int = Field(default=64 * 1024, ge=1024, le=64 * MIB)
    """Of the first JSON value of a chunked request."""
    parameters_s: float = Field(default=10, gt=0, le=HOUR_S)
    input_idle_s: float = Field(default=30, gt=0, le=HOUR_S)
    input_total_s: float = Field(default=600, gt=0, le=DAY_S)
    text_bytes: int = Field(default=32 * 1024, ge=1, le=64 * MIB)
    audio_bytes: int = Field(default=10 * MIB, ge=1, le=1024 * MIB)
    """Of decoded audio input."""
    tts_characters: int = Field(default=4096, ge=1, le=1_000_000)
    streams_per_process: int = Field(default=10_000, ge=1, le=1_000_000)
    streams_per_app: int = Field(default=100_000, ge=1, le=100_000_000)
    streams_per_user: int = Field(default=4, ge=1, le=1_000_000)
    readers_per_user: int = Field(default=32, ge=1, le=1_000_000)
    """Event streams that one process sends to a user at once. At least `streams_per_user` are allowed."""
    readers_per_process: int = Field(default=20_000, ge=1, le=1_000_000)
    """Event streams that one process sends at once. At least `streams_per_process` are allowed."""
    stream_s: float = Field(default=600, gt=0, le=DAY_S)
    answer_bytes: int = Field(default=MIB, ge=1024, le=256 * MIB)
    """Of one answer's text: a longer one ends there, with finish reason `length`."""
    resume_grace_s: float = Field(default=60, ge=0, le=DAY_S)
    """How long a stream goes on that nobody reads."""
    readable_s: float = Field(default=120, ge=0, le=DAY_S)
    """How long a stream can be read again once it has ended."""
    log_bytes: int = Field(default=8 * MIB, ge=64 * 1024, le=1024 * MIB)
    """Of the events that one stream keeps for readers who come back."""
    lag_bytes: int = Field(default=MIB, ge=64 * 1024, le=256 * MIB)
    """What a reader may leave unread before its stream waits for it."""
    send_timeout_s: float = Field(default=30, gt=0, le=HOUR_S)
    ping_after_s: float = Field(default=15, gt=0, le=HOUR_S)
    rates: dict[str, Rate] = Field(default_factory=_rates, max_length=100)
    """By the name of the limit in the route table; a name that is absent has its default."""

    def rate(self, name: str) -> Rate | None:
        return self.rates.get(name) or _rates().get(name)


LIMITS = ConfigKind("limits", "Limits", Limits, singleton=True)
