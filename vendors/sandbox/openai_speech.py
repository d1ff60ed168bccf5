"""OpenAI's `POST /audio/speech`: bare audio, or events with their usage."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from streams.audio import wav_header
from vendors.sandbox.calls import Call, Framing
from vendors.sandbox.content import PIECE_MS, mp3, pieces, speech, speech_ms, tokens
from vendors.sandbox.openai_dialect import (
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
_LONGEST = 4_096
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
class _Asked:
    old: bool
    """Of the models that are billed by characters."""
    input: str
    speed: float
    response_format: str
    events: bool


async def _speak(call: Call) -> None:
    asked = _read(call, await read_json(call, _FIELDS))
    audio = _audio(call, asked)
    spoken_ms = speech_ms(asked.input, speed=asked.speed)
    unit = {} if asked.old else {"output_tokens": PIECE_MS // AUDIO_TOKEN_MS}
    if asked.old:
        call.charge(characters=len(asked.input))
    else:
        call.charge(input_tokens=tokens(asked.input))
    framing = EVENTS if asked.events else Framing(_MEDIA_TYPES[asked.response_format])
    async with call.stream(framing) as flow:
        for piece in pieces(audio, spoken_ms):
            await flow.output(_delta(piece) if asked.events else piece, **unit)
        if asked.events:
            await flow.frame(event({"type": "speech.audio.done", "usage": _usage(call.billed)}))


def _read(call: Call, asked: Mapping[str, Any]) -> _Asked:
    model = check_model(asked.get("model"), SPEECH_MODELS)
    old = model.startswith("tts-1")
    required(asked, "input")
    words = text(asked, "input", least=1, most=_LONGEST) or ""
    text(asked, "instructions", most=_LONGEST)
    if not isinstance(required(asked, "voice"), dict):
        one_of(asked, "voice", _OLD_VOICES if old else VOICES, usual="")
    response_format = one_of(asked, "response_format", _MEDIA_TYPES, usual="mp3")
    events = one_of(asked, "stream_format", ("sse", "audio"), usual="audio") == "sse"
    if events and old:
        message = f"Unsupported value: 'stream_format' does not support 'sse' with model '{asked['model']}'."
        raise invalid(message, param="stream_format", code="unsupported_value")
    speed = number(asked, "speed", least=0.25, most=4) or 1.0
    call.asks(**{name: value for name, value in asked.items() if name != "input"})
    return _Asked(old, words, speed if old else 1.0, response_format, events)


def _audio(call: Call, asked: _Asked) -> bytes:
    pcm = speech(asked.input, SAMPLE_RATE, speed=asked.speed)
    if asked.response_format not in {"mp3", "wav", "pcm"}:
        call.impossible(f"{asked.response_format} is not encoded here")
    if asked.response_format == "mp3":
        return mp3(pcm, SAMPLE_RATE)
    return pcm if asked.response_format == "pcm" else wav_header(SAMPLE_RATE) + pcm


def _delta(piece: bytes) -> bytes:
    return event({"type": "speech.audio.delta", "audio": b64encode(piece).decode()})


def _usage(billed: Mapping[str, float]) -> dict[str, float]:
    taken, spoken = billed.get("input_tokens", 0), billed.get("output_tokens", 0)
    return {"input_tokens": taken, "output_tokens": spoken, "total_tokens": taken + spoken}
