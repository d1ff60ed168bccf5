"""Text to speech: a text in, its audio out as it is made, then the link to the whole (§4.19)."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from actors.context import StreamContext
from actors.records import keep_attempts, unit_price
from actors.speech_store import keep
from actors.strategies import Broken, Voice
from actors.voice import SpokenFile, voice_attempt
from streams.events import Audio, AudioChunk, VisemeEvent
from vendors.fallback import Attempt, first_success
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage, Visemes


@dataclass(frozen=True, slots=True)
class SpeechPlan:
    """A request that was found good: its strategies are looked up."""

    text: str
    voices: Sequence[tuple[str, Voice | Broken]]


async def speak(ctx: StreamContext, plan: SpeechPlan) -> dict[str, Any]:
    """Play one text-to-speech stream; returns what `end` tells."""
    ctx.receipt.mark("input")
    attempts = [
        voice_attempt(name, voice.fault if isinstance(voice, Broken) else voice, plan.text)
        for name, voice in plan.voices
    ]
    try:
        return await _spoken(ctx, plan, attempts)
    finally:
        await keep_attempts(ctx)


async def _spoken(ctx: StreamContext, plan: SpeechPlan, attempts: Sequence[Attempt[SpeechItem]]) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        with ctx.receipt.waiting():
            attempt, items = await stack.enter_async_context(first_success(attempts, ctx.attempts))
        voice = dict(plan.voices)[attempt.strategy]
        assert isinstance(voice, Voice), "a fault is no winner"
        speaking = _Speaking(ctx, voice, Usage(len(plan.text), 0))
        async for item in items:
            await speaking.take(item)
        await speaking.end()
    return {"strategy": attempt.strategy, "finish_reason": "stop"}


class _Speaking:
    """The audio of one text, from the first piece to the stored file."""

    def __init__(self, ctx: StreamContext, voice: Voice, usage: Usage) -> None:
        self._ctx = ctx
        self._voice = voice
        self._usage = usage
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
        await self._send(self._file.end())
        kept = await keep(
            self._ctx.resources.objects,
            f"speech/{self._ctx.owner.user_id}/{self._ctx.stream_id}",
            self._file,
            need_viseme=self._voice.need_viseme,
        )
        price = unit_price(self._voice.config.price, self._usage)
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
