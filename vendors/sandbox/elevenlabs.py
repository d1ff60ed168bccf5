"""ElevenLabs' text to speech over HTTP, as audio or as lines of JSON with times, and its voices and models."""

import math
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from aiohttp import web

from streams.wire.codec import dumps, loads
from vendors.sandbox.calls import Call, Dialect, Framing, Refusal
from vendors.sandbox.content import Timed, mp3, pieces, speech, speech_ms, timed_characters
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.sandbox import Sandbox
from vendors.speech.languages import ELEVENLABS_MODELS

_MODELS = {
    "eleven_multilingual_v2": 10_000,
    "eleven_flash_v2": 30_000,
    "eleven_turbo_v2": 30_000,
    "eleven_flash_v2_5": 40_000,
    "eleven_turbo_v2_5": 40_000,
    "eleven_v3": 5_000,
}
"""The models, with the highest number of characters per request."""
_CHEAP = ("eleven_flash", "eleven_turbo")
_MP3 = ("22050_32", "24000_48", "44100_32", "44100_64", "44100_96", "44100_128", "44100_192")
_PCM = ("8000", "16000", "22050", "24000", "32000", "44100", "48000")
_FORMATS = frozenset([f"mp3_{name}" for name in _MP3] + [f"pcm_{name}" for name in _PCM])
_SETTINGS = {"stability": (0, 1), "similarity_boost": (0, 1), "style": (0, 1), "speed": (0.7, 1.2)}
_UNKNOWN_VOICE = "nobody"
_SPEAK = "/elevenlabs/v1/text-to-speech/{voice_id}"


def routes(sandbox: Sandbox) -> list[web.RouteDef]:
    return [
        sandbox.post(_SPEAK, ELEVENLABS, "tts", _complete),
        sandbox.post(f"{_SPEAK}/stream", ELEVENLABS, "tts", _stream),
        sandbox.post(f"{_SPEAK}/with-timestamps", ELEVENLABS, "tts", _complete_timed),
        sandbox.post(f"{_SPEAK}/stream/with-timestamps", ELEVENLABS, "tts", _stream_timed),
        sandbox.get("/elevenlabs/v1/voices", ELEVENLABS, "voices", _voices),
        sandbox.get("/elevenlabs/v1/models", ELEVENLABS, "models", _models),
    ]


def _refusal(code: int, status: str, message: str) -> Refusal:
    return Refusal(code, {"detail": {"status": status, "message": message}})


def _unprocessable(where: str, name: str, message: str, kind: str) -> Refusal:
    return Refusal(422, {"detail": [{"loc": [where, name], "msg": message, "type": kind}]})


def _key(request: web.Request) -> str:
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return request.headers.get("xi-api-key") or bearer


def _refuse(fault: Fault, key_options: KeyOptions) -> Refusal:
    match fault:
        case Fault.UNAUTHORIZED:
            return _refusal(401, "invalid_api_key", "Invalid API key")
        case Fault.RATE_LIMITED:
            message = "Too many concurrent requests. Your current subscription is associated with a maximum of 5."
            refusal = _refusal(429, "too_many_concurrent_requests", message)
            refusal.headers["Retry-After"] = f"{key_options.retry_after_s:g}"
            return refusal
        case Fault.OUT_OF_QUOTA:
            message = "This request exceeds your quota. You have 0 credits remaining."
            return _refusal(401, "quota_exceeded", message)
        case Fault.UNAVAILABLE:
            return _refusal(429, "system_busy", "We are experiencing heavy traffic. Please try again later.")
        case _:
            return Refusal(500, b"Internal Server Error", {"Content-Type": "text/plain; charset=utf-8"})


def _headers(request: web.Request) -> Mapping[str, str]:
    return {
        "request-id": token_hex(10),
        "current-concurrent-requests": "1",
        "maximum-concurrent-requests": "5",
    }


ELEVENLABS = Dialect("elevenlabs", _key, _refuse, _headers)

_BUSY = {"detail": {"status": "system_busy", "message": "The system is busy."}}
LINES = Framing(
    "application/json",
    error=dumps(_BUSY) + b"\n",
    malformed=b'{"audio_base64":"//NExAA\n',
    odd_frames=lambda odd: [odd + b"\n"],
)


@dataclass(frozen=True, slots=True)
class _Speech:
    """The audio of a text."""

    text: str
    audio: bytes
    whole_ms: int
    content_type: str

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield pieces of audio with the characters that begin in them."""
        audio = list(pieces(self.audio, self.whole_ms))
        each_ms = self.whole_ms * len(audio[0]) / len(self.audio)  # The last one may be shorter.
        characters = timed_characters(self.text, self.whole_ms)
        for number, piece in enumerate(audio, 1):
            begun = [character for character in characters if number - 1 <= character.begin_ms / each_ms < number]
            times = _alignment(begun)
            yield {"audio_base64": b64encode(piece).decode(), "alignment": times, "normalized_alignment": times}


def _alignment(characters: Sequence[Timed]) -> dict[str, Any] | None:
    if not characters:
        return None
    return {
        "characters": [character.text for character in characters],
        "character_start_times_seconds": [character.begin_ms / 1000 for character in characters],
        "character_end_times_seconds": [character.end_ms / 1000 for character in characters],
    }


async def _complete(call: Call) -> None:
    result = await _synthesize(call)
    await call.answer(result.audio, empty=b"", content_type=result.content_type)


async def _stream(call: Call) -> None:
    result = await _synthesize(call)
    async with call.stream(Framing(result.content_type)) as flow:
        for piece in pieces(result.audio, result.whole_ms):
            await flow.output(piece)


async def _complete_timed(call: Call) -> None:
    result = await _synthesize(call)
    times = _alignment(timed_characters(result.text, result.whole_ms))
    audio = b64encode(result.audio).decode()
    value = {"audio_base64": audio, "alignment": times, "normalized_alignment": times}
    await call.answer(value, empty={"audio_base64": "", "alignment": None, "normalized_alignment": None})


async def _stream_timed(call: Call) -> None:
    result = await _synthesize(call)
    async with call.stream(LINES) as flow:
        for line in result.lines():
            await flow.output(dumps(line) + b"\n")


async def _voices(call: Call) -> None:
    voice = {"voice_id": "21m00Tcm4TlvDq8ikWAM", "name": "Rachel", "category": "premade", "labels": {}}
    await call.answer({"voices": [voice]}, empty={"voices": []})


async def _models(call: Call) -> None:
    models = [
        {"model_id": name, "name": name, "can_do_text_to_speech": True, "maximum_text_length_per_request": most}
        for name, most in _MODELS.items()
    ]
    await call.answer(models, empty=[])


async def _synthesize(call: Call) -> _Speech:
    body = await _read_body(call)
    output_format = call.request.query.get("output_format", "mp3_44100_128")
    if output_format not in _FORMATS:
        raise _unprocessable("query", "output_format", "value is not a valid enumeration member", "type_error.enum")
    model = _check_body(body, call.request.match_info["voice_id"])
    text = body["text"]
    codec, rate = output_format.split("_")[0], int(output_format.split("_")[1])
    speed = (body.get("voice_settings") or {}).get("speed") or 1.0
    call.record(model=model, voice=call.request.match_info["voice_id"], output_format=output_format)
    call.charge(characters=len(text))
    call.headers["x-character-count"] = str(len(text))
    call.headers["character-cost"] = str(math.ceil(len(text) / 2) if model.startswith(_CHEAP) else len(text))
    call.headers["history-item-id"] = token_hex(10)
    pcm = speech(text, rate, speed=speed)
    audio, content_type = (pcm, "audio/pcm") if codec == "pcm" else (mp3(pcm, rate), "audio/mpeg")
    return _Speech(text, audio, speech_ms(text, speed=speed), content_type)


async def _read_body(call: Call) -> dict[str, Any]:
    try:
        body = loads(await call.request.read())
    except ValueError:
        raise _unprocessable("body", "0", "Expecting value", "value_error.jsondecode") from None
    if not isinstance(body, dict) or not isinstance(body.get("text"), str):
        raise _unprocessable("body", "text", "field required", "value_error.missing")
    return body


def _check_body(body: Mapping[str, Any], voice_id: str) -> str:
    """Validate the body, and return the model."""
    model = body.get("model_id") or "eleven_multilingual_v2"
    if voice_id == _UNKNOWN_VOICE or not voice_id.isalnum():
        raise _refusal(400, "voice_not_found", f"A voice with the voice_id {voice_id} was not found.")
    if model not in _MODELS:
        raise _refusal(400, "model_not_found", f"A model with model ID {model} does not exist.")
    if not body["text"].strip():
        raise _refusal(400, "input_text_empty", "Input text is empty.")
    if len(body["text"]) > _MODELS[model]:
        message = f"A maximum of {_MODELS[model]} characters is allowed for this model."
        raise _refusal(400, "max_character_limit_exceeded", message)
    language = body.get("language_code")
    if language and model == "eleven_multilingual_v2":
        raise _refusal(
            400, "unsupported_language", f"Model '{model}' does not support the language_code parameter."
        )
    if language and model in ELEVENLABS_MODELS and language not in ELEVENLABS_MODELS[model].codes:
        raise _refusal(400, "unsupported_language", f"Model '{model}' does not support the language '{language}'.")
    settings = body.get("voice_settings") or {}
    for name, (least, most) in _SETTINGS.items():
        value = settings.get(name)
        if value is not None and not least <= value <= most:
            message = f"Invalid setting for {name} received, expected {least} to {most}, received {value}."
            raise _refusal(400, "invalid_voice_settings", message)
    return str(model)
