"""Tries a strategy, or a vendor account, that need not be stored, with one call of its vendor."""

import base64
import io
import wave
from typing import Any

from actors.clients.trials import Trial, try_chat, try_voice
from app.http.rows.endpoint import Call
from app.trials.models import StrategyTrial, TryBody, TryPath, TryReply
from storage.configs.kinds.apps import APPS
from storage.configs.kinds.conversation import Conversation
from storage.configs.kinds.speech import Speech
from storage.configs.kinds.vendor_accounts import VENDOR_ACCOUNTS, VendorAccount

_PCM_RATE_HZ = 24_000


async def try_strategy(call: Call, path: TryPath, body: TryBody, value: Any) -> TryReply:
    """Call the vendor of a draft once. Raises `VendorError`, `InvalidParameter` or `ConfigInvalid`."""
    trial = await _try(call, path, body, value)
    currency = call.services.configs.singleton(APPS, path.app).currency
    return TryReply(elapsed_ms=trial.elapsed_ms, strategy=_reply(trial, currency))


async def _try(call: Call, path: TryPath, body: TryBody, value: Any) -> Trial:
    strategies = call.services.strategies
    if path.kind == VENDOR_ACCOUNTS.name:
        draft = strategies.draft_account(path.name, VendorAccount.model_validate(value), body.model)
        return await try_chat(draft, body.text, body.params)
    if path.kind == "conversation":
        draft = strategies.draft_conversation(path.app, path.name, Conversation.model_validate(value))
        return await try_chat(draft, body.text, body.params)
    return await try_voice(strategies.draft_voice(path.app, path.name, Speech.model_validate(value)), body.text)


def _reply(trial: Trial, currency: str) -> StrategyTrial:
    usage = trial.meter.usage
    rate_hz = next((event["sample_rate"] for event in trial.events if event["event"] == "format"), _PCM_RATE_HZ)
    audio = _wav(trial.audio, rate_hz) if trial.mime_type == "audio/wav" else trial.audio
    return StrategyTrial(
        platform=trial.platform,
        first_output_ms=trial.first_output_ms,
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
