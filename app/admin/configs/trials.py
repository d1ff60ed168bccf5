"""Admin API: tries a config before it is published, with one call of its vendor."""

import base64
import io
import wave
from typing import Annotated, Any, Literal

from pydantic import Field

from actors.clients.trials import Trial, try_chat, try_voice
from app.admin.area import FOR_EDITORS
from app.admin.configs.drafts import check_draft
from app.admin.configs.sink_trials import try_sink
from app.http.rows.endpoint import Call, Endpoint
from app.http.rows.inputs import Body, Path
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.conversation import Conversation
from storage.configs.kinds.events import EVENTS, Events
from storage.configs.kinds.speech import Speech
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS, VendorAccount
from storage.configs.rows import ConfigKey
from storage.errors import UnknownApp
from streams.wire.errors import ConfigInvalid, ServiceError
from streams.wire.model import Model

_PCM_RATE_HZ = 24_000


class TryPath(Model):
    app: str
    """An app of this server."""
    kind: Literal["conversation", "speech", "vendor_accounts", "events"]
    """The kind of the config."""
    name: Annotated[str, Field(max_length=128)]
    """The name of the config, which need not be stored."""


class TryBody(Model):
    value: dict[str, Any]
    """The config to try."""
    text: str = Field(min_length=1, max_length=2000)
    """The user's message, the text to speak, or a text for the data of a test event."""
    params: dict[str, Any] = Field(default_factory=dict)
    """The values of `{{.…}}` in the system prompt."""
    model: str = Field(default="", max_length=256)
    """The language model to ask. Only for a vendor account, which names none."""


class TryReply(Model):
    platform: str = ""
    first_output_ms: int | None = None
    elapsed_ms: int = 0
    text: str = ""
    """The answer of the language model."""
    audio_base64: str = ""
    """The audio of the voice."""
    mime_type: str = ""
    input_units: int = 0
    output_units: int = 0
    """Tokens of the language model, or characters that were spoken."""
    usage_source: str = ""
    """`vendor`, or `estimated`."""
    price: str = "0"
    """In the app's currency."""
    currency: str = ""
    events: list[dict[str, Any]] = Field(default_factory=list)
    """The first 200 events, each with `at_ms` and `event`."""
    error: str | None = None
    """Why the call failed."""


async def try_config(call: Call, path: Path[TryPath], body: Body[TryBody]) -> TryReply:
    """Try a draft before it is published.

    It is that of a strategy, of a vendor account with a language model, or of an event sink. The vendor is called
    once through its account, at its usual price. Nothing is stored. The reply reports a failure of the vendor.
    """
    value = await check_draft(call, ConfigKey(path.app, path.kind, path.name), body.value)
    currency = call.services.configs.singleton(APPS, path.app).currency
    try:
        if path.kind == EVENTS.name:
            sink = Events.model_validate(value)
            elapsed_ms = await try_sink(call, path.app, path.name, sink, body.text)
            return TryReply(platform=path.kind, elapsed_ms=elapsed_ms, currency=currency)
        trial = await _try(call, path, body, value)
    except ConfigInvalid:
        raise
    except ServiceError as error:
        return TryReply(currency=currency, error=f"{error.error_type}: {error.what}")
    return _reply(trial, currency)


async def _try(call: Call, path: TryPath, body: TryBody, value: Any) -> Trial:
    strategies = call.services.strategies
    if path.kind == VENDOR_ACCOUNTS.name:
        draft = strategies.draft_account(path.name, VendorAccount.model_validate(value), body.model)
        return await try_chat(draft, body.text, body.params)
    if path.kind == "conversation":
        draft = strategies.draft_conversation(path.app, path.name, Conversation.model_validate(value))
        return await try_chat(draft, body.text, body.params)
    return await try_voice(strategies.draft_voice(path.app, path.name, Speech.model_validate(value)), body.text)


def _reply(trial: Trial, currency: str) -> TryReply:
    usage = trial.meter.usage
    rate_hz = next((event["sample_rate"] for event in trial.events if event["event"] == "format"), _PCM_RATE_HZ)
    audio = _wav(trial.audio, rate_hz) if trial.mime_type == "audio/wav" else trial.audio
    return TryReply(
        platform=trial.platform,
        first_output_ms=trial.first_output_ms,
        elapsed_ms=trial.elapsed_ms,
        text=trial.text,
        audio_base64=base64.b64encode(audio).decode(),
        mime_type=trial.mime_type,
        input_units=usage.input_token,
        output_units=usage.output_token,
        usage_source=trial.meter.source,
        price=f"{trial.cost:f}",
        currency=currency,
        events=trial.events,
    )


def _wav(pcm: bytes, rate_hz: int) -> bytes:
    """Return 16-bit mono PCM with the head of a WAV file, which browsers can play."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate_hz)
        writer.writeframes(pcm)
    return file.getvalue()


TRIAL_ROUTES = [
    Endpoint(
        "POST",
        "/admin/api/configs/{app}/{kind}/{name}/try",
        try_config,
        FOR_EDITORS,
        errors=(UnknownApp, ConfigInvalid),
    ),
]
