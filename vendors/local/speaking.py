"""`POST /v1/audio/speech`: text to speech, as bare audio or as events, these with the times of the phonemes.

Beside OpenAI's events stands `{"type": "speech.audio.phonemes", "phonemes": [{"phoneme": …, "offset_ms": …}]}`:
IPA, and `_` for a pause (piper adds the spaces and stops of the sentence, and `^` and `$` around it).
"""

import base64
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Literal

from aiohttp import web
from pydantic import Field

from streams.wire.model import Model
from vendors.local.encoding import ENCODERS, Encoder
from vendors.local.engines import Engines
from vendors.local.faults import Fault, read_body
from vendors.local.protocols import Spoken
from vendors.local.sending import EVENT_STREAM, event, send

_LONGEST_INPUT = 4_096


class _Asked(Model):
    model: str
    input: str
    voice: str | None = None
    """Absent or empty: the engine's usual one."""
    speed: float = Field(default=1.0, ge=0.25, le=4.0)
    response_format: Literal["mp3", "wav", "pcm"] = "mp3"
    stream_format: Literal["audio", "sse"] = "audio"


async def speak(engines: Engines, request: web.Request) -> web.StreamResponse:
    asked = read_body(_Asked, await request.read())
    engine = engines.voice(asked.model)
    _check_input(asked.input)
    encoder = ENCODERS[asked.response_format](engine.sample_rate)
    headers = {"Content-Type": encoder.media_type, "X-Sample-Rate": str(engine.sample_rate)}
    async with engine.speak(asked.input, voice=asked.voice, speed=asked.speed) as spoken:
        if asked.stream_format == "sse":
            events = _events(spoken, encoder, len(asked.input))
            return await send(request, events, headers | {"Content-Type": EVENT_STREAM})
        return await send(request, _audio(spoken, encoder), headers)


def _check_input(text: str) -> None:
    if not text.strip():
        raise Fault(400, "input must not be empty", param="input")
    if len(text) > _LONGEST_INPUT:
        raise Fault(
            400,
            f"input has {len(text)} characters; at most {_LONGEST_INPUT} are spoken",
            param="input",
            code="string_above_max_length",
        )


async def _audio(spoken: AsyncIterator[Spoken], encoder: Encoder) -> AsyncGenerator[bytes, None]:
    async for piece in spoken:
        if audio := encoder.encode(piece.pcm):
            yield audio
    yield encoder.finish()


async def _events(spoken: AsyncIterator[Spoken], encoder: Encoder, characters: int) -> AsyncGenerator[bytes, None]:
    """Phonemes stand before the audio that they belong to."""
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
