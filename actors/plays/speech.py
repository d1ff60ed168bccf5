"""Text to speech: emit the audio of a text while it is synthesized, then the link to the complete file (§4.19)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from actors.clients.strategies import Broken, Voice
from actors.plays.records import store_attempts, unit_price
from actors.plays.utterance import Utterance, open_utterance
from actors.runtime.context import Stop, StreamContext
from actors.synthesis.voice import SpokenFile
from storage.conversations.speech_files import speech_name
from streams.events import Audio, AudioChunk, VisemeEvent
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage, Visemes


@dataclass(frozen=True, slots=True)
class SpeechPlan:
    """A validated request: its strategies are resolved."""

    text: str
    voices: Sequence[tuple[str, Voice | Broken]]


async def speak(ctx: StreamContext, plan: SpeechPlan) -> dict[str, Any]:
    """Play one text-to-speech stream. Return the content of the `end` event."""
    ctx.receipt.mark("input")
    # Until a voice has won, any of them may be one that continues without readers.
    ctx.outlives_readers = any(isinstance(v, Voice) and v.config.on_abandon == "drain" for _, v in plan.voices)
    content: dict[str, Any] = {"strategy": None, "finish_reason": "stop"}
    try:
        await _speak(ctx, plan, content)
    except asyncio.CancelledError:
        if ctx.stop is not Stop.CANCELED:
            raise
        content["finish_reason"] = "canceled"
    finally:
        ctx.settled = True
        await store_attempts(ctx)
    return content


async def _speak(ctx: StreamContext, plan: SpeechPlan, content: dict[str, Any]) -> None:
    voices = [(name, voice.fault if isinstance(voice, Broken) else voice) for name, voice in plan.voices]
    async with open_utterance(ctx, plan.text, voices) as utterance:
        content["strategy"] = utterance.strategy
        voice = dict(plan.voices)[utterance.strategy]
        assert isinstance(voice, Voice), "a broken voice cannot win"
        ctx.outlives_readers = voice.config.on_abandon == "drain"
        output = _SpeechOutput(ctx, voice, plan.text, utterance)
        async for item in utterance.items:
            await output.send(item)
        await output.end()


class _SpeechOutput:
    """Emits the audio of one text and stores the complete file."""

    def __init__(self, ctx: StreamContext, voice: Voice, text: str, utterance: Utterance) -> None:
        self._ctx = ctx
        self._voice = voice
        self._text = text
        self._utterance = utterance
        self._file = SpokenFile()
        self._begun = False

    async def send(self, item: SpeechItem) -> None:
        match item:
            case SpeechFormat():
                self._file.begin(item)
            case AudioBytes(audio):
                await self._send_audio(self._file.add_audio(audio))
            case Visemes(visemes):
                shapes = self._file.add_visemes(visemes)
                if self._voice.need_viseme and shapes:
                    await self._ctx.emit(VisemeEvent(shapes))

    async def end(self) -> None:
        await self._send_audio(self._file.end(self._text))
        if self._voice.need_viseme and (shapes := self._file.estimate_visemes()):
            await self._ctx.emit(VisemeEvent(shapes, estimated=True))
        owner, clock = self._ctx.owner, self._ctx.resources.clock
        stored = await self._utterance.store(
            self._file,
            speech_name(*owner, stream_id=self._ctx.stream_id, now=clock.now(owner.app_id)),
            need_viseme=self._voice.need_viseme,
        )
        price = unit_price(self._voice.config.price, Usage(len(self._text), 0))
        await self._ctx.emit(Audio(stored.audio_url, self._file.mime_type, price, stored.viseme_url))

    async def _send_audio(self, audio: bytes) -> None:
        if not audio:
            return
        if self._begun or self._file.format is None:
            await self._ctx.emit(AudioChunk(audio))
            return
        self._begun = True
        self._ctx.receipt.first_output()
        self._ctx.receipt.mark("first_audio")
        audio_format = self._file.format
        await self._ctx.emit(AudioChunk(audio, audio_format.mime_type, audio_format.sample_rate))
