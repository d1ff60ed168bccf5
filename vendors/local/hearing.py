"""`POST /v1/audio/transcriptions`: what is said in a recording."""

import math
from typing import Any, Literal

from aiohttp import BodyPartReader, web

from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.local.engines import Engines
from vendors.local.faults import Fault, read_body
from vendors.local.protocols import Transcription

_LARGEST_FILE = 25 * 1024 * 1024
_LARGEST_FIELD = 16 * 1024


class _Asked(Model):
    model: str
    language: str | None = None
    prompt: str | None = None
    response_format: Literal["json", "verbose_json"] = "json"


async def transcribe(engines: Engines, request: web.Request) -> web.Response:
    if request.content_type != "multipart/form-data":
        raise Fault(400, "The body must be multipart/form-data")
    audio, fields = await _read(request)
    asked = read_body(_Asked, dumps(fields))
    engine = engines.ear(asked.model)
    if audio is None:
        raise Fault(400, "file is required", param="file")
    if asked.language and asked.language.partition("-")[0].lower() != "en":
        message = f"Language '{asked.language}' is not supported: {asked.model} hears English only"
        raise Fault(400, message, param="language", code="unsupported_language")
    heard = await engine.transcribe(audio, prompt=asked.prompt or None)
    answer = _verbose(heard) if asked.response_format == "verbose_json" else {"text": heard.text}
    usage = {"type": "duration", "seconds": math.ceil(heard.seconds)}
    return web.Response(body=dumps(answer | {"usage": usage}), content_type="application/json")


async def _read(request: web.Request) -> tuple[bytes | None, dict[str, str]]:
    """The file, and the other fields by their names."""
    audio: bytes | None = None
    fields: dict[str, str] = {}
    try:
        parts = await request.multipart()
        while (part := await parts.next()) is not None:
            if not isinstance(part, BodyPartReader) or part.name is None:
                raise Fault(400, "The body must be one form, each part with a name")
            if part.name == "file":
                audio = await _content(part, _LARGEST_FILE)
            else:
                fields[part.name] = (await _content(part, _LARGEST_FIELD)).decode()
    except ValueError:
        raise Fault(400, "The form is malformed") from None
    return audio, fields


async def _content(part: BodyPartReader, limit: int) -> bytes:
    content = bytearray()
    while chunk := await part.read_chunk():
        content += chunk
        if len(content) > limit:
            raise Fault(413, f"{part.name} is larger than {limit} bytes", param=part.name)
    return bytes(content)


def _verbose(heard: Transcription) -> dict[str, Any]:
    segments = [
        {
            "id": index,
            "seek": 0,
            "start": round(segment.start_s, 3),
            "end": round(segment.end_s, 3),
            "text": segment.text,
            "tokens": list(segment.tokens),
            "temperature": segment.temperature,
            "avg_logprob": segment.avg_logprob,
            "compression_ratio": segment.compression_ratio,
            "no_speech_prob": segment.no_speech_prob,
        }
        for index, segment in enumerate(heard.segments)
    ]
    return {
        "task": "transcribe",
        "language": "english",
        "duration": round(heard.seconds, 3),
        "text": heard.text,
        "segments": segments,
    }
