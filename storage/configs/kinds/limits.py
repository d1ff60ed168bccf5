"""Kind `limits`: limits on requests, streams and readers of an app."""

from typing import Annotated

from pydantic import Field

from storage.configs.kinds.base import DAY_S, HOUR_S, MIB, ConfigKind
from streams.wire.model import Model


class Rate(Model):
    """At most `count` calls in `per_s` seconds. They may all arrive at the same time."""

    count: int = Field(ge=1, le=1_000_000)
    """Maximum number of calls."""
    per_s: float = Field(ge=0.001, le=366 * DAY_S)
    """Seconds within which they are counted."""


RATES = {
    "signup": Rate(count=20, per_s=HOUR_S),
    "login_failures": Rate(count=60, per_s=HOUR_S),
    "login_network": Rate(count=10, per_s=HOUR_S / 4),
    "login_address": Rate(count=100, per_s=HOUR_S / 4),
    "login_account": Rate(count=100, per_s=HOUR_S),
    "email_minute": Rate(count=1, per_s=60),
    "email_day": Rate(count=10, per_s=DAY_S),
    "email_address": Rate(count=100, per_s=HOUR_S),
    "mail_user": Rate(count=20, per_s=DAY_S),
    "mail_recipient": Rate(count=3, per_s=DAY_S),
    "cards": Rate(count=30, per_s=HOUR_S),
    "wallets": Rate(count=30, per_s=HOUR_S),
    "payment_reads": Rate(count=120, per_s=60),
    "detect": Rate(count=10, per_s=60),
    "share_codes": Rate(count=10, per_s=HOUR_S),
    "share_code_address": Rate(count=100, per_s=HOUR_S),
    "iplocation": Rate(count=120, per_s=60),
    "board_upload": Rate(count=60, per_s=60),
    "prediction": Rate(count=60, per_s=60),
    "image": Rate(count=30, per_s=60),
    "server": Rate(count=200, per_s=2),
}
"""The rates by name, with their defaults."""
_STREAM_MARGIN_S = 60
"""Time for the last steps of a stream after its time is over."""


class Limits(Model):
    body_bytes: int = Field(default=128 * 1024, ge=1024, le=64 * MIB)
    """Maximum size of a JSON body."""
    parameters_bytes: int = Field(default=64 * 1024, ge=1024, le=64 * MIB)
    """Maximum size of the JSON object at the start of a chunked request."""
    parameters_s: float = Field(default=10, ge=0.01, le=HOUR_S)
    """Seconds within which that JSON object must arrive."""
    input_idle_s: float = Field(default=30, ge=0.01, le=HOUR_S)
    """Maximum pause in seconds while a body, or the input of a stream, arrives."""
    input_total_s: float = Field(default=600, ge=0.01, le=DAY_S)
    """Seconds within which a whole body, or the whole input of a stream, must arrive."""
    text_bytes: int = Field(default=32 * 1024, ge=1, le=64 * MIB)
    """Maximum size of text input."""
    audio_bytes: int = Field(default=10 * MIB, ge=1, le=1024 * MIB)
    """Maximum size of audio input, after decoding base64."""
    tts_characters: int = Field(default=4096, ge=1, le=1_000_000)
    """Maximum length of a text to be spoken."""
    streams_per_process: int = Field(default=10_000, ge=1, le=1_000_000)
    """Maximum number of running streams per process."""
    streams_per_app: int = Field(default=100_000, ge=1, le=100_000_000)
    """Maximum number of running streams of the app."""
    streams_per_user: int = Field(default=4, ge=1, le=1_000_000)
    """Maximum number of running streams of a user."""
    predictions_per_user: int = Field(default=16, ge=1, le=1_000_000)
    """Maximum number of predictions that one process lets a user wait for at once."""
    readers_per_user: int = Field(default=32, ge=1, le=1_000_000)
    """Maximum number of event streams that one process sends to a user at once. `streams_per_user` applies if it is
    higher."""
    readers_per_process: int = Field(default=20_000, ge=1, le=1_000_000)
    """Maximum number of event streams that one process sends at once. `streams_per_process` applies if it is
    higher."""
    stream_s: float = Field(default=600, ge=0.01, le=DAY_S)
    """Maximum duration of a stream in seconds."""
    answer_bytes: int = Field(default=MIB, ge=1024, le=256 * MIB)
    """Maximum size of an answer's text. A longer answer is truncated and has the finish reason `length`."""
    resume_grace_s: float = Field(default=60, ge=0, le=DAY_S)
    """Seconds for which a stream continues without a reader."""
    readable_s: float = Field(default=120, ge=0, le=DAY_S)
    """Seconds for which a stream can still be read after it has ended."""
    log_bytes: int = Field(default=8 * MIB, ge=64 * 1024, le=1024 * MIB)
    """Maximum size of the events that a stream keeps for resuming readers."""
    lag_bytes: int = Field(default=MIB, ge=64 * 1024, le=256 * MIB)
    """How far a reader may fall behind before its stream waits for it."""
    speech_days: int = Field(default=2, ge=2, le=3660)
    """Days after which the audio of text-to-speech streams is deleted. Links to it expire after one day."""
    conversation_days: int | None = Field(default=None, ge=1, le=3660)
    """Days after its last turn at which a conversation is deleted. None: conversations are kept."""
    export_days: int = Field(default=7, ge=1, le=365)
    """Days after which the file of an export of a user's data is deleted."""
    login_failure_days: int = Field(default=7, ge=1, le=90)
    """Days after which the trace of a failed login is deleted."""
    webhook_days: int = Field(default=90, ge=7, le=3660)
    """Days after which a received webhook is deleted. A repeat of it is recognized until then."""
    event_days: int = Field(default=30, ge=1, le=3660)
    """Days after which an event is deleted that its sink has not accepted."""
    mail_days: int = Field(default=90, ge=2, le=3660)
    """Days after which the row of an email of a strategy is deleted. Opens of it are not reported any more then."""
    task_days: int = Field(default=30, ge=2, le=3660)
    """Days after which predictions, image tasks and their files are deleted. Links to files expire after a day."""
    send_timeout_s: float = Field(default=30, ge=0.01, le=HOUR_S)
    """Seconds within which a reader must accept data. A slower reader is disconnected."""
    ping_after_s: float = Field(default=15, ge=0.01, le=HOUR_S)
    """Seconds without an event after which a `ping` is sent."""
    rates: dict[Annotated[str, Field(max_length=64)], Rate] = Field(default_factory=RATES.copy, max_length=100)
    """Rate limits by name. A name that is missing keeps its default."""

    @property
    def max_stream_s(self) -> float:
        """The longest time in seconds that a stream can hold its turn."""
        return self.stream_s + _STREAM_MARGIN_S

    def rate(self, name: str) -> Rate:
        """Return the rate `name`, which is one of `RATES`."""
        return self.rates.get(name) or RATES[name]


LIMITS = ConfigKind("limits", "Limits", Limits, singleton=True)
