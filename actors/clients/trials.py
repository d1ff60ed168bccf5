"""Trials of strategies that are not stored yet: one call to the vendor, with its events, latency and usage."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from actors.clients.strategies import Strategy, Voice, price_of
from streams.wire.template import render
from vendors.calls.gate import Gate
from vendors.calls.meter import Meter, UnitPrice, estimated_tokens
from vendors.protocols import AudioBytes, ChatMessage, Finish, SpeechFormat, TextDelta, Usage, Visemes

_WITHIN_S = 60
_MAX_EVENTS = 200
_MAX_BYTES = 2 * 1024 * 1024


@dataclass(slots=True)
class Trial:
    """The response of a vendor. Times are in milliseconds since the call."""

    platform: str
    price: UnitPrice
    meter: Meter
    events: list[dict[str, Any]] = field(default_factory=list)
    """The first events, at most `_MAX_EVENTS`, each with `at_ms` and `event`."""
    first_output_ms: int | None = None
    elapsed_ms: int = 0
    text: str = ""
    audio: bytes = b""
    mime_type: str = ""
    began: float = field(default_factory=time.monotonic)

    @property
    def cost(self) -> Decimal:
        usage = self.meter.usage
        return self.price.input * usage.input_token + self.price.output * usage.output_token

    def add(self, item: Any) -> None:
        """Record the next item of the response."""
        self.meter.observe(item)
        at_ms = round((time.monotonic() - self.began) * 1000)
        if isinstance(item, TextDelta | AudioBytes) and self.first_output_ms is None:
            self.first_output_ms = at_ms
        match item:
            case TextDelta(text):
                self.text += text
                event: dict[str, Any] = {"event": "text", "text": text}
            case AudioBytes(audio):
                self.audio += audio
                event = {"event": "audio", "bytes": len(audio)}
            case SpeechFormat(mime_type, sample_rate):
                self.mime_type = mime_type
                event = {"event": "format", "mime_type": mime_type, "sample_rate": sample_rate}
            case Visemes(visemes):
                event = {"event": "visemes", "count": len(visemes)}
            case Usage(input_token, output_token):
                event = {"event": "usage", "input": input_token, "output": output_token}
            case Finish(reason):
                event = {"event": "finish", "reason": reason}
            case _:
                return
        if len(self.events) < _MAX_EVENTS:
            self.events.append({"at_ms": at_ms, **event})

    @property
    def is_large(self) -> bool:
        return len(self.text) + len(self.audio) > _MAX_BYTES


async def try_chat(strategy: Strategy, text: str, params: dict[str, Any]) -> Trial:
    """Send `text` to the language model of a strategy. Raises `VendorError`."""
    prompt = render(strategy.config.chat.system_prompt, params)
    system = [ChatMessage("system", prompt)] if prompt else []
    meter = Meter(estimated_tokens(prompt + text))
    trial = Trial(strategy.platform, strategy.price, meter)
    messages = [*system, ChatMessage("user", text)]
    return await _run(trial, strategy.gate, lambda: strategy.model.reply(messages))


async def try_voice(voice: Voice, text: str) -> Trial:
    """Synthesize `text` with a voice. Raises `VendorError`."""
    trial = Trial(voice.platform, price_of(voice.config), Meter(len(text), ignore_reports=True))
    return await _run(trial, voice.gate, lambda: voice.synthesizer.speak(text))


async def _run(
    trial: Trial, gate: Gate, open_items: Callable[[], AbstractAsyncContextManager[AsyncIterator[Any]]]
) -> Trial:
    async def record() -> None:
        trial.began = time.monotonic()
        async with open_items() as items:
            async for item in items:
                trial.add(item)
                if trial.is_large:
                    break

    await gate.call(trial.platform, record, within_s=_WITHIN_S)
    trial.elapsed_ms = round((time.monotonic() - trial.began) * 1000)
    return trial
