"""`POST /v1/audio/assessments`: pronunciation assessment. Our own addition to OpenAI's API.

The body is a form. The fields of `AssessmentRequest` and `model` come before `file`, which may arrive at the speed
of speech: 16-bit mono PCM at 16 kHz, raw or as WAV. The response is
`{"text": …, "raw_data": {…}, "usage": {"type": "duration", "seconds": …}}`, with `raw_data` in the form of vendor
A's detailed result.
"""

import asyncio
import math
from collections.abc import Awaitable, Mapping
from typing import Literal, TypeVar

from aiohttp import BodyPartReader, MultipartReader, web
from pydantic import Field

from streams.audio.audio import PCM, parse_wav
from streams.languages import language_of
from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.local.engines.engines import Engines
from vendors.local.engines.faults import Fault, read_body
from vendors.local.engines.protocols import AssessorEngine
from vendors.protocols import AssessmentRequest
from vendors.speech.decoding import SAMPLE_RATE

Read = TypeVar("Read")

_MAX_FILE_BYTES = 11 * 1024 * 1024
_MAX_FIELD_BYTES = 256 * 1024
_MAX_FIELDS = 16
_READ_TIMEOUT_S = 60
_MIN_S = 0.1
_RIFF = b"RIFF"


class _AssessmentForm(Model):
    model: str
    reference_text: str = Field(min_length=1)
    language: str = "en-US"
    grading_system: Literal["FivePoint", "HundredMark"] = "HundredMark"
    granularity: Literal["Phoneme", "Word", "FullText"] = "Phoneme"
    enable_miscue: Literal["true", "false"] = "false"
    enable_prosody_assessment: Literal["true", "false"] = "false"

    def request(self) -> AssessmentRequest:
        if language_of(self.language) != "en":
            message = f"Language '{self.language}' is not supported: {self.model} grades English only"
            raise Fault(400, message, param="language", code="unsupported_language")
        return AssessmentRequest(
            reference_text=self.reference_text,
            language=self.language,
            grading_system=self.grading_system,
            granularity=self.granularity,
            enable_miscue=self.enable_miscue == "true",
            enable_prosody_assessment=self.enable_prosody_assessment == "true",
        )


async def assess(engines: Engines, request: web.Request) -> web.Response:
    if request.content_type != "multipart/form-data":
        raise Fault(400, "The body must be multipart/form-data")
    try:
        engine, assessment_request, audio = await _read(engines, await request.multipart())
    except ValueError:
        raise Fault(400, "The form is malformed") from None
    pcm = _samples(audio)
    assessed = await engine.assess(pcm, assessment_request)
    response = {
        "text": assessed.text,
        "raw_data": assessed.raw,
        "usage": {"type": "duration", "seconds": math.ceil(assessed.seconds)},
    }
    return web.Response(body=dumps(response), content_type="application/json")


async def _read(engines: Engines, parts: MultipartReader) -> tuple[AssessorEngine, AssessmentRequest, bytes]:
    """Read the request and its audio. An invalid request is rejected before its audio arrives."""
    fields: dict[str, str] = {}
    for _ in range(_MAX_FIELDS):
        part = await _within_timeout(parts.next())
        if part is None:
            break
        if not isinstance(part, BodyPartReader) or part.name is None:
            raise Fault(400, "The body must be a single form whose parts have names")
        if part.name == "file":
            engine, assessment_request = _parse_fields(engines, fields)
            return engine, assessment_request, await _content(part, _MAX_FILE_BYTES)
        fields[part.name] = (await _content(part, _MAX_FIELD_BYTES)).decode()
    _parse_fields(engines, fields)
    raise Fault(400, "file is required", param="file")


def _parse_fields(engines: Engines, fields: Mapping[str, str]) -> tuple[AssessorEngine, AssessmentRequest]:
    assessment_request = read_body(_AssessmentForm, dumps(fields))
    return engines.assessor(assessment_request.model), assessment_request.request()


async def _content(part: BodyPartReader, limit: int) -> bytes:
    content = bytearray()
    while chunk := await _within_timeout(part.read_chunk()):
        content += chunk
        if len(content) > limit:
            raise Fault(413, f"{part.name} is larger than {limit} bytes", param=part.name)
    return bytes(content)


async def _within_timeout(read: Awaitable[Read]) -> Read:
    try:
        async with asyncio.timeout(_READ_TIMEOUT_S):
            return await read
    except TimeoutError:
        raise Fault(408, f"No data was received for {_READ_TIMEOUT_S} seconds", code="timeout") from None


def _samples(audio: bytes) -> bytes:
    """Return complete samples without a WAV header."""
    if audio.startswith(_RIFF):
        audio = _wav_samples(audio)
    pcm = audio[: len(audio) // 2 * 2]
    if len(pcm) < _MIN_S * SAMPLE_RATE * 2:
        message = f"The audio is shorter than {_MIN_S} seconds"
        raise Fault(400, message, param="file", code="audio_too_short")
    return pcm


def _wav_samples(audio: bytes) -> bytes:
    try:
        wav = parse_wav(audio)
    except ValueError:
        wav = None
    if wav is None or (wav.format_tag, wav.channels, wav.sample_rate, wav.bits) != (PCM, 1, SAMPLE_RATE, 16):
        raise Fault(400, "The audio must be 16-bit mono PCM at 16 kHz", param="file")
    end = None if wav.data_bytes is None else wav.data_offset + wav.data_bytes
    return audio[wav.data_offset : end]
