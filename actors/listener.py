"""Hears what the user says: the text as sent, or speech recognised by the first strategy that can."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

from actors.context import StreamContext
from actors.strategies import Broken, Ear, Strategy, hedge_of, price_of
from streams.audio import SNIFF_BYTES, pcm_seconds, sniff
from streams.durations import duration_s
from streams.tape import Tape
from streams.tasks import background, unless_failed
from streams.wire.errors import InvalidParameter, ServiceError
from vendors.fallback import Attempt, failed_attempt, first_success
from vendors.meter import Meter
from vendors.protocols import AudioFormat, Transcript

PCM_RATE = 16_000
PCM = AudioFormat("audio/pcm", PCM_RATE)


@dataclass(frozen=True, slots=True)
class HeardInput:
    """What the user said; `audio` and what it is where it was spoken, `platform` of who understood it."""

    text: str
    platform: str = "user"
    audio: bytes | None = None
    audio_format: AudioFormat = PCM


async def read_text(ctx: StreamContext) -> HeardInput:
    with ctx.receipt.waiting():
        text = (await ctx.input.whole()).decode()
    ctx.receipt.mark("input")
    if not text.strip():
        raise InvalidParameter("text is required")
    return HeardInput(text)


async def hear(
    ctx: StreamContext, strategies: Sequence[Strategy | Broken], *, language_code: str, prompt: str | None
) -> HeardInput:
    """Recognise the spoken input, while it arrives where the recogniser can.

    Silence is the user's fault, not the recogniser's: no other is asked. Nor is one for a fault of the input,
    which is raised as it is.
    """
    with ctx.receipt.waiting():
        head = await ctx.input.head(SNIFF_BYTES)
        if not head:
            raise InvalidParameter("audio is required")
        mime_type = sniff(head)
        audio_format = AudioFormat(mime_type, 0) if mime_type else PCM
        length = _Length(ctx.input, audio_format)
        ears = [_ear(ctx, strategy, language_code=language_code, prompt=prompt) for strategy in strategies]
        attempts = [_attempt(ctx, name, ear, audio_format, length) for name, ear in ears]
        async with background(_completed(ctx)) as completed:
            with unless_failed(completed):
                platform, text = await _recognised(ctx, attempts)
            await completed
    ctx.receipt.mark("stt")
    if not text.strip():
        raise InvalidParameter("no speech was heard")
    return HeardInput(text.replace("\0", ""), platform, await ctx.input.whole(), audio_format)


async def _completed(ctx: StreamContext) -> None:
    await ctx.input.completed()
    ctx.receipt.mark("input")


async def _recognised(ctx: StreamContext, attempts: Sequence[Attempt[Transcript]]) -> tuple[str, str]:
    async with first_success(attempts, ctx.attempts) as (attempt, transcripts):
        return attempt.vendor, [transcript.text async for transcript in transcripts if transcript.final][-1]


class _Length:
    """How long the input plays: of raw samples at any time, else once they are all here."""

    def __init__(self, tape: Tape, audio_format: AudioFormat) -> None:
        self._tape = tape
        self._format = audio_format
        self._whole_s: float | None = None

    async def half_s(self) -> float:
        """Half of it, at the input's end."""
        await self._tape.completed()
        if self._whole_s is None and self._format is not PCM:
            audio = await self._tape.whole()
            self._whole_s = await asyncio.to_thread(
                duration_s, audio, self._format.mime_type
            )  # MP3: frame by frame
        return self._seconds() / 2

    def seconds_so_far(self) -> int:
        """As it is billed: whole seconds."""
        return math.ceil(self._seconds())

    def _seconds(self) -> float:
        if self._format is PCM:
            return pcm_seconds(len(self._tape), PCM_RATE)
        return self._whole_s or 0.0


def _ear(
    ctx: StreamContext, strategy: Strategy | Broken, *, language_code: str, prompt: str | None
) -> tuple[str, Ear | ServiceError]:
    if isinstance(strategy, Broken):
        return strategy.name, strategy.fault
    try:
        strategies = ctx.resources.strategies
        ear = strategies.ear(ctx.owner.app_id, strategy, language_code=language_code, prompt=prompt)
    except ServiceError as error:
        return strategy.name, error
    return strategy.name, ear


def _attempt(
    ctx: StreamContext, name: str, ear: Ear | ServiceError, audio_format: AudioFormat, length: "_Length"
) -> Attempt[Transcript]:
    """An attempt whose time runs from the end of the input, longer for longer audio."""
    if isinstance(ear, ServiceError):
        return failed_attempt(name, "stt", ear)

    return Attempt(
        strategy=name,
        stage="stt",
        vendor=ear.platform,
        open=lambda: ear.recognizer.transcribe(ctx.input, audio_format),
        is_output=lambda transcript: transcript.final,
        first_output_s=ear.config.waits.first_output_s,
        between_s=ear.config.waits.between_s,
        hedge=hedge_of(ear.config),
        gate=ear.gate,
        meter=lambda: Meter(length.seconds_so_far),
        price=price_of(ear.config),
        clock=length.half_s,
        early=ear.recognizer.streams(audio_format),
    )
