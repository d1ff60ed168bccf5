"""OpenAI's `POST /audio/speech`: audio, or events with audio and usage."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from streams.audio.audio import wav_header
from vendors.sandbox.calls import Call, Framing
from vendors.sandbox.content import PIECE_MS, mp3, pieces, speech, speech_ms, tokens
from vendors.sandbox.openai.dialect import (
    AUDIO_TOKEN_MS,
    EVENTS,
    OPENAI,
    SAMPLE_RATE,
    SPEECH_MODELS,
    VOICES,
    check_model,
    event,
    invalid,
    number,
    one_of,
    read_json,
    required,
    text,
)
from vendors.sandbox.sandbox import Sandbox

_FIELDS = frozenset({"model", "input", "voice", "instructions", "response_format", "speed", "stream_format"})
_MAX_CHARACTERS = 4_096
_OLD_VOICES = ("alloy", "ash", "coral", "echo", "fable", "onyx", "nova", "sage", "shimmer")
_MEDIA_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/opus",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
    "pcm": "audio/pcm",
}


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    return [sandbox.post("/openai/v1/audio/speech", OPENAI, "tts", _speak)]


@dataclass(frozen=True, slots=True)
class _SpeechRequest:
    is_old: bool
    """Whether the model is billed by characters."""
    input: str
    speed: float
    response_format: str
    events: bool


async def _speak(call: Call) -> None:
    request = _parse(call, await read_json(call, _FIELDS))
    audio = _audio(call, request)
    spoken_ms = speech_ms(request.input, speed=request.speed)
    unit = {} if request.is_old else {"output_tokens": PIECE_MS // AUDIO_TOKEN_MS}
    if request.is_old:
        call.charge(characters=len(request.input))
    else:
        call.charge(input_tokens=tokens(request.input))
    framing = EVENTS if request.events else Framing(_MEDIA_TYPES[request.response_format])
    async with call.stream(framing) as flow:
        for piece in pieces(audio, spoken_ms):
            await flow.output(_delta(piece) if request.events else piece, **unit)
        if request.events:
            await flow.frame(event({"type": "speech.audio.done", "usage": _usage(call.billed)}))


def _parse(call: Call, body: Mapping[str, Any]) -> _SpeechRequest:
    model = check_model(body.get("model"), SPEECH_MODELS)
    is_old = model.startswith("tts-1")
    required(body, "input")
    words = text(body, "input", minimum=1, maximum=_MAX_CHARACTERS) or ""
    text(body, "instructions", maximum=_MAX_CHARACTERS)
    if not isinstance(required(body, "voice"), dict):
        one_of(body, "voice", _OLD_VOICES if is_old else VOICES, default="")
    response_format = one_of(body, "response_format", _MEDIA_TYPES, default="mp3")
    events = one_of(body, "stream_format", ("sse", "audio"), default="audio") == "sse"
    if events and is_old:
        message = f"Unsupported value: 'stream_format' does not support 'sse' with model '{body['model']}'."
        raise invalid(message, param="stream_format", code="unsupported_value")
    speed = number(body, "speed", minimum=0.25, maximum=4) or 1.0
    call.record(**body)
    return _SpeechRequest(is_old, words, speed if is_old else 1.0, response_format, events)


def _audio(call: Call, request: _SpeechRequest) -> bytes:
    pcm = speech(request.input, SAMPLE_RATE, speed=request.speed)
    if request.response_format not in {"mp3", "wav", "pcm"}:
        call.unsupported(f"the audio format {request.response_format} is not supported")
    if request.response_format == "mp3":
        return mp3(pcm, SAMPLE_RATE)
    return pcm if request.response_format == "pcm" else wav_header(SAMPLE_RATE) + pcm


def _delta(piece: bytes) -> bytes:
    return event({"type": "speech.audio.delta", "audio": b64encode(piece).decode()})


def _usage(billed: Mapping[str, float]) -> dict[str, float]:
    input_tokens, output_tokens = billed.get("input_tokens", 0), billed.get("output_tokens", 0)
    return {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }
