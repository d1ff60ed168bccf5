"""Hears what the user says: the text as sent, or speech recognised by the first strategy that can."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from actors.context import StreamContext
from actors.strategies import Broken, Ear, Strategy, hedge_of, price_of
from streams.audio import SNIFF_BYTES, pcm_seconds, sniff
from streams.wire.errors import InvalidParameter, ServiceError
from vendors.fallback import Attempt, failed_attempt, first_success
from vendors.meter import Meter
from vendors.protocols import AudioFormat, Transcript

PCM_RATE = 16_000
PCM = AudioFormat("audio/pcm", PCM_RATE)


@dataclass(frozen=True, slots=True)
class Heard:
    """What the user said; `audio` and what it is where it was spoken, `platform` of who understood it."""

    text: str
    platform: str = "user"
    audio: bytes | None = None
    audio_format: AudioFormat = PCM


async def read_text(ctx: StreamContext) -> Heard:
    with ctx.receipt.waiting():
        text = (await ctx.input.whole()).decode()
    ctx.receipt.mark("input")
    if not text.strip():
        raise InvalidParameter("text is required")
    return Heard(text)


async def hear(
    ctx: StreamContext, strategies: Sequence[Strategy | Broken], *, language_code: str, prompt: str | None
) -> Heard:
    """Recognise the spoken input. Silence is the user's fault, not the recogniser's: no other is asked."""
    with ctx.receipt.waiting():
        audio = await ctx.input.whole()
    ctx.receipt.mark("input")
    if not audio:
        raise InvalidParameter("audio is required")
    mime_type = sniff(audio[:SNIFF_BYTES])
    audio_format = AudioFormat(mime_type, 0) if mime_type else PCM
    seconds = pcm_seconds(len(audio), PCM_RATE) if mime_type is None else 0.0
    ears = [_ear(ctx, strategy, language_code=language_code, prompt=prompt) for strategy in strategies]
    attempts = [_attempt(ctx, name, ear, audio_format, seconds=seconds) for name, ear in ears]
    with ctx.receipt.waiting():
        async with first_success(attempts, ctx.attempts) as (attempt, transcripts):
            text = [transcript.text async for transcript in transcripts if transcript.final][-1]
    ctx.receipt.mark("stt")
    if not text.strip():
        raise InvalidParameter("no speech was heard")
    return Heard(text.replace("\0", ""), attempt.vendor, audio, audio_format)


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
    ctx: StreamContext, name: str, ear: Ear | ServiceError, audio_format: AudioFormat, *, seconds: float
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
        first_output_s=ear.config.waits.first_output_s + seconds / 2,
        between_s=ear.config.waits.between_s,
        hedge=hedge_of(ear.config),
        gate=ear.gate,
        meter=lambda: Meter(math.ceil(seconds)),
        price=price_of(ear.config),
    )
