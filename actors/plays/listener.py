"""Obtain the user's input: the text as sent, or speech recognized by the first strategy that succeeds."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from actors.clients.strategies import Broken, RecognitionStrategy, Strategy, hedge_of, price_of
from actors.plays.input_audio import PCM, InputAudio
from actors.plays.plan import TurnPlan
from actors.runtime.context import StreamContext
from streams.audio.pcm import has_sound
from streams.audio.turn_end import TurnEnd
from streams.events import EndOfSpeech
from streams.tasks import background, unless_failed
from streams.wire.errors import InvalidParameter, ServiceError
from vendors.calls.attempts import Attempt, failed_attempt
from vendors.calls.fallback import first_success
from vendors.calls.meter import Meter
from vendors.protocols import AudioFormat, Recognizer, Transcript

_MIN_AUDIO_S = 0.1
"""Vendors refuse shorter audio."""


@dataclass(frozen=True, slots=True)
class HeardInput:
    """The user's input. For speech, also the audio and its format. `platform` is the recognizer's platform id."""

    text: str
    platform: str = "user"
    audio: bytes | None = None
    audio_format: AudioFormat = PCM


async def read_text(ctx: StreamContext) -> HeardInput:
    """Read text input. Raises `InvalidParameter` if it is blank."""
    with ctx.receipt.waiting():
        text = (await ctx.input.whole()).decode()
    ctx.receipt.mark("input")
    if not text.strip():
        raise InvalidParameter("text is required")
    return HeardInput(text)


async def hear(ctx: StreamContext, plan: TurnPlan) -> HeardInput:
    """Recognize spoken input, while it arrives if the recognizer supports that.

    Raises `InvalidParameter` if the audio is silent or too short, and if a recognizer succeeds without any words.
    No other strategy is tried then, and none after an error of the input itself, which is raised unchanged.
    """
    with ctx.receipt.waiting():
        audio = await InputAudio.begun(ctx.input, ctx.resources.converter)
        recognitions = [_recognition(ctx, strategy, plan) for strategy in plan.strategies]
        recognizers = [found.recognizer for _, found in recognitions if isinstance(found, RecognitionStrategy)]
        audio = await audio.accepted_by(recognizers)
        await _check_audio(audio, recognizers)
        attempts = [_attempt(name, recognition, audio) for name, recognition in recognitions]
        async with background(_completed(ctx, plan.turn_end)) as completed:
            with unless_failed(completed):
                platform, text = await _recognized(ctx, attempts)
            await completed
    ctx.receipt.mark("stt")
    if not text.strip():
        raise InvalidParameter("no speech was heard")
    return HeardInput(text.replace("\0", ""), platform, await audio.buffer.whole(), audio.format)


async def _check_audio(audio: InputAudio, recognizers: Sequence[Recognizer]) -> None:
    """Raise `InvalidParameter` if the audio is too short or silent.

    16-bit samples are examined while they arrive, other files once they are complete, if they can be decoded here.
    """
    if audio.has_plain_samples:
        await _wait_for_sound(audio)
    elif not any(audio.streams_to(recognizer) for recognizer in recognizers):
        found = await audio.find_sound(min_s=_MIN_AUDIO_S)
        if found is not None:
            _check(found.seconds, is_audible=found.is_audible)


async def _wait_for_sound(audio: InputAudio) -> None:
    """Wait until samples are worth asking a recognizer. Raises `InvalidParameter` if they end before that."""
    count, is_audible = 0, False
    async with aclosing(audio.samples()) as pieces:
        async for per_second, samples in pieces:
            is_audible = is_audible or has_sound(samples, at=count)
            count += len(samples)
            if is_audible and count >= _MIN_AUDIO_S * per_second:
                return
    _check(count / per_second if count else 0, is_audible=is_audible)


def _check(seconds: float, *, is_audible: bool) -> None:
    if seconds < _MIN_AUDIO_S:
        raise InvalidParameter("audio is too short")
    if not is_audible:
        raise InvalidParameter("no speech was heard")


async def _completed(ctx: StreamContext, turn_end: TurnEnd | None) -> None:
    await ctx.input.completed()
    ctx.receipt.mark("input")
    if turn_end is not None and turn_end.at_ms is not None:
        await ctx.emit(EndOfSpeech(turn_end.at_ms))


async def _recognized(ctx: StreamContext, attempts: Sequence[Attempt[Transcript]]) -> tuple[str, str]:
    async with first_success(attempts, ctx.attempts) as (attempt, transcripts):
        return attempt.vendor, [transcript.text async for transcript in transcripts if transcript.final][-1]


def _recognition(
    ctx: StreamContext, strategy: Strategy | Broken, plan: TurnPlan
) -> tuple[str, RecognitionStrategy | ServiceError]:
    if isinstance(strategy, Broken):
        return strategy.name, strategy.fault
    try:
        recognition = ctx.resources.strategies.recognition(
            ctx.owner.app_id, strategy, language_code=plan.language_code, prompt=plan.stt_prompt
        )
    except ServiceError as error:
        return strategy.name, error
    return strategy.name, recognition


def _attempt(name: str, recognition: RecognitionStrategy | ServiceError, audio: InputAudio) -> Attempt[Transcript]:
    """Return an attempt whose timeouts start when the input ends. The first result gets half its duration more."""
    if isinstance(recognition, ServiceError):
        return failed_attempt(name, "stt", recognition)

    return Attempt(
        strategy=name,
        stage="stt",
        vendor=recognition.platform,
        open=lambda: audio.transcribed(recognition.recognizer, recognition.platform),
        is_output=lambda transcript: transcript.final,
        first_output_s=recognition.config.waits.first_output_s,
        between_s=recognition.config.waits.between_s,
        hedge=hedge_of(recognition.config),
        gate=recognition.gate,
        meter=lambda: Meter(audio.seconds_so_far),
        price=price_of(recognition.config),
        clock=audio.half_s,
        early=audio.streams_to(recognition.recognizer),
        model=recognition.config.model,
    )
