"""Text to speech: a text in, its audio out as it is made, then the link to the whole (§4.19)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from actors.context import Stop, StreamContext
from actors.records import keep_attempts, unit_price
from actors.strategies import Broken, Voice
from actors.utterance import Utterance, uttered
from actors.voice import SpokenFile
from streams.events import Audio, AudioChunk, VisemeEvent
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage, Visemes


@dataclass(frozen=True, slots=True)
class SpeechPlan:
    """A request that was found good: its strategies are looked up."""

    text: str
    voices: Sequence[tuple[str, Voice | Broken]]


async def speak(ctx: StreamContext, plan: SpeechPlan) -> dict[str, Any]:
    """Play one text-to-speech stream; returns what `end` tells."""
    ctx.receipt.mark("input")
    ctx.outlives_readers = any(isinstance(v, Voice) and v.config.on_abandon == "drain" for _, v in plan.voices)
    told: dict[str, Any] = {"strategy": None, "finish_reason": "stop"}
    try:
        await _speak(ctx, plan, told)
    except asyncio.CancelledError:
        if ctx.stop is not Stop.CANCELED:
            raise
        told["finish_reason"] = "canceled"
    finally:
        ctx.settled = True
        await keep_attempts(ctx)
    return told


async def _speak(ctx: StreamContext, plan: SpeechPlan, told: dict[str, Any]) -> None:
    voices = [(name, voice.fault if isinstance(voice, Broken) else voice) for name, voice in plan.voices]
    async with uttered(ctx, plan.text, voices) as utterance:
        told["strategy"] = utterance.strategy
        voice = dict(plan.voices)[utterance.strategy]
        assert isinstance(voice, Voice), "a fault is no winner"
        ctx.outlives_readers = voice.config.on_abandon == "drain"
        speaking = _Speaking(ctx, voice, plan.text, utterance)
        async for item in utterance.items:
            await speaking.take(item)
        await speaking.end()


class _Speaking:
    """The audio of one text, from the first piece to the stored file."""

    def __init__(self, ctx: StreamContext, voice: Voice, text: str, utterance: Utterance) -> None:
        self._ctx = ctx
        self._voice = voice
        self._text = text
        self._utterance = utterance
        self._file = SpokenFile()
        self._begun = False

    async def take(self, item: SpeechItem) -> None:
        match item:
            case SpeechFormat():
                self._file.begin(item)
            case AudioBytes(audio):
                await self._send(self._file.piece(audio))
            case Visemes(visemes):
                shapes = self._file.shapes(visemes)
                if self._voice.need_viseme and shapes:
                    await self._ctx.emit(VisemeEvent(shapes))

    async def end(self) -> None:
        await self._send(self._file.end(self._text))
        if self._voice.need_viseme and (shapes := self._file.estimate()):
            await self._ctx.emit(VisemeEvent(shapes, estimated=True))
        kept = await self._utterance.keep(
            self._file,
            f"speech/{self._ctx.owner.user_id}/{self._ctx.stream_id}",
            need_viseme=self._voice.need_viseme,
        )
        price = unit_price(self._voice.config.price, Usage(len(self._text), 0))
        await self._ctx.emit(Audio(kept.audio_url, self._file.mime_type, price, kept.viseme_url))

    async def _send(self, audio: bytes) -> None:
        if not audio:
            return
        if self._begun or self._file.format is None:
            await self._ctx.emit(AudioChunk(audio))
            return
        self._begun = True
        self._ctx.receipt.first_output()
        self._ctx.receipt.mark("first_audio")
        told = self._file.format
        await self._ctx.emit(AudioChunk(audio, told.mime_type, told.sample_rate))
