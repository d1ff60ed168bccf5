"""`POST /v1/audio/transcriptions`: speech recognition of a recording."""

import math
from typing import Any, Literal

from aiohttp import BodyPartReader, web

from streams.languages import language_of
from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.local.engines.engines import Engines
from vendors.local.engines.faults import Fault, read_body
from vendors.local.engines.protocols import Transcription

_MAX_FILE_BYTES = 25 * 1024 * 1024
_MAX_FIELD_BYTES = 16 * 1024


class _TranscriptionForm(Model):
    model: str
    language: str | None = None
    prompt: str | None = None
    response_format: Literal["json", "verbose_json"] = "json"


async def transcribe(engines: Engines, request: web.Request) -> web.Response:
    if request.content_type != "multipart/form-data":
        raise Fault(400, "The body must be multipart/form-data")
    audio, fields = await _read(request)
    form = read_body(_TranscriptionForm, dumps(fields))
    engine = engines.recognizer(form.model)
    if audio is None:
        raise Fault(400, "file is required", param="file")
    if form.language and language_of(form.language) != "en":
        message = f"Language '{form.language}' is not supported: {form.model} recognizes English only"
        raise Fault(400, message, param="language", code="unsupported_language")
    transcription = await engine.transcribe(audio, prompt=form.prompt or None)
    response = _verbose(transcription) if form.response_format == "verbose_json" else {"text": transcription.text}
    usage = {"type": "duration", "seconds": math.ceil(transcription.seconds)}
    return web.Response(body=dumps(response | {"usage": usage}), content_type="application/json")


async def _read(request: web.Request) -> tuple[bytes | None, dict[str, str]]:
    """Return the file and the other fields."""
    audio: bytes | None = None
    fields: dict[str, str] = {}
    try:
        parts = await request.multipart()
        while (part := await parts.next()) is not None:
            if not isinstance(part, BodyPartReader) or part.name is None:
                raise Fault(400, "The body must be a single form whose parts have names")
            if part.name == "file":
                audio = await _content(part, _MAX_FILE_BYTES)
            else:
                fields[part.name] = (await _content(part, _MAX_FIELD_BYTES)).decode()
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


def _verbose(transcription: Transcription) -> dict[str, Any]:
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
        for index, segment in enumerate(transcription.segments)
    ]
    return {
        "task": "transcribe",
        "language": "english",
        "duration": round(transcription.seconds, 3),
        "text": transcription.text,
        "segments": segments,
    }
