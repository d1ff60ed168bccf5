"""`POST /v1/audio/speech`: text to speech, as raw audio or as events with the times of phonemes.

In addition to OpenAI's events there is
`{"type": "speech.audio.phonemes", "phonemes": [{"phoneme": …, "offset_ms": …}]}`. Phonemes are IPA, and `_` is a
pause. piper adds the spaces and punctuation of the sentence, and `^` and `$` around it.
"""

import base64
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Literal

from aiohttp import web
from pydantic import Field

from streams.wire.model import Model
from vendors.local.endpoints.encoding import ENCODERS, Encoder
from vendors.local.endpoints.event_stream import EVENT_STREAM, event, send
from vendors.local.engines.engines import Engines
from vendors.local.engines.faults import Fault, read_body
from vendors.local.engines.protocols import Spoken

_MAX_INPUT_CHARACTERS = 4_096


class _SpeechRequest(Model):
    model: str
    input: str
    voice: str | None = None
    """If absent or empty, the engine's default voice is used."""
    speed: float = Field(default=1.0, ge=0.25, le=4.0)
    response_format: Literal["mp3", "wav", "pcm"] = "mp3"
    stream_format: Literal["audio", "sse"] = "audio"


async def speak(engines: Engines, request: web.Request) -> web.StreamResponse:
    spec = read_body(_SpeechRequest, await request.read())
    engine = engines.voice(spec.model)
    _check_input(spec.input)
    encoder = ENCODERS[spec.response_format](engine.sample_rate)
    headers = {"Content-Type": encoder.media_type, "X-Sample-Rate": str(engine.sample_rate)}
    async with engine.speak(spec.input, voice=spec.voice, speed=spec.speed) as spoken:
        if spec.stream_format == "sse":
            events = _events(spoken, encoder, len(spec.input))
            return await send(request, events, headers | {"Content-Type": EVENT_STREAM})
        return await send(request, _audio(spoken, encoder), headers)


def _check_input(text: str) -> None:
    if not text.strip():
        raise Fault(400, "input must not be empty", param="input")
    if len(text) > _MAX_INPUT_CHARACTERS:
        raise Fault(
            400,
            f"input has {len(text)} characters; the maximum is {_MAX_INPUT_CHARACTERS}",
            param="input",
            code="string_above_max_length",
        )


async def _audio(spoken: AsyncIterator[Spoken], encoder: Encoder) -> AsyncGenerator[bytes, None]:
    async for piece in spoken:
        if audio := encoder.encode(piece.pcm):
            yield audio
    yield encoder.finish()


async def _events(spoken: AsyncIterator[Spoken], encoder: Encoder, characters: int) -> AsyncGenerator[bytes, None]:
    """Yield the events. Phonemes come before their audio."""
    async for piece in spoken:
        if events := _phonemes(piece, encoder.delay_ms) + _delta(encoder.encode(piece.pcm)):
            yield events
    usage = {"input_tokens": characters, "output_tokens": 0, "total_tokens": characters}
    yield _delta(encoder.finish()) + event({"type": "speech.audio.done", "usage": usage})


def _phonemes(piece: Spoken, delay_ms: int) -> bytes:
    phonemes = [{"phoneme": phoneme, "offset_ms": delay_ms + offset_ms} for phoneme, offset_ms in piece.phonemes]
    return event({"type": "speech.audio.phonemes", "phonemes": phonemes}) if phonemes else b""


def _delta(audio: bytes) -> bytes:
    if not audio:
        return b""
    return event({"type": "speech.audio.delta", "audio": base64.b64encode(audio).decode()})
