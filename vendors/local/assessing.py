"""`POST /v1/audio/assessments`: how well a speaker says a text. A route of our own in the manner of OpenAI's.

A form. Its fields stand before its `file`, which may arrive as slowly as somebody speaks: PCM, 16-bit mono at
16 kHz, bare or under a WAV header. The fields are those of `AssessmentRequest`, and `model`.
The answer: `{"text": …, "raw_data": {…}, "usage": {"type": "duration", "seconds": …}}`, `raw_data` as vendor A's
detailed result.
"""

import asyncio
import math
from collections.abc import Awaitable, Mapping
from typing import Literal, TypeVar

from aiohttp import BodyPartReader, MultipartReader, web
from pydantic import Field

from streams.audio import PCM, parse_wav
from streams.wire.codec import dumps
from streams.wire.model import Model
from vendors.local.decoding import SAMPLE_RATE
from vendors.local.engines import Engines
from vendors.local.faults import Fault, read_body
from vendors.local.protocols import AssessorEngine
from vendors.protocols import AssessmentRequest

Read = TypeVar("Read")

_LARGEST_FILE = 11 * 1024 * 1024
_LARGEST_FIELD = 256 * 1024
_MOST_FIELDS = 16
_QUIET_S = 60
_SHORTEST_S = 0.1
_RIFF = b"RIFF"


class _Asked(Model):
    model: str
    reference_text: str = Field(min_length=1)
    language: str = "en-US"
    grading_system: Literal["FivePoint", "HundredMark"] = "HundredMark"
    granularity: Literal["Phoneme", "Word", "FullText"] = "Phoneme"
    enable_miscue: Literal["true", "false"] = "false"
    enable_prosody_assessment: Literal["true", "false"] = "false"

    def request(self) -> AssessmentRequest:
        if self.language.replace("_", "-").partition("-")[0].lower() != "en":
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
        engine, asked, audio = await _read(engines, await request.multipart())
    except ValueError:
        raise Fault(400, "The form is malformed") from None
    pcm = _samples(audio)
    assessed = await engine.assess(pcm, asked)
    answer = {
        "text": assessed.text,
        "raw_data": assessed.raw,
        "usage": {"type": "duration", "seconds": math.ceil(assessed.seconds)},
    }
    return web.Response(body=dumps(answer), content_type="application/json")


async def _read(engines: Engines, parts: MultipartReader) -> tuple[AssessorEngine, AssessmentRequest, bytes]:
    """What is asked, refused before its audio arrives where it is wrong; and the audio."""
    fields: dict[str, str] = {}
    for _ in range(_MOST_FIELDS):
        part = await _timed(parts.next())
        if part is None:
            break
        if not isinstance(part, BodyPartReader) or part.name is None:
            raise Fault(400, "The body must be one form, each part with a name")
        if part.name == "file":
            engine, asked = _asked(engines, fields)
            return engine, asked, await _content(part, _LARGEST_FILE)
        fields[part.name] = (await _content(part, _LARGEST_FIELD)).decode()
    _asked(engines, fields)
    raise Fault(400, "file is required", param="file")


def _asked(engines: Engines, fields: Mapping[str, str]) -> tuple[AssessorEngine, AssessmentRequest]:
    asked = read_body(_Asked, dumps(fields))
    return engines.assessor(asked.model), asked.request()


async def _content(part: BodyPartReader, limit: int) -> bytes:
    content = bytearray()
    while chunk := await _timed(part.read_chunk()):
        content += chunk
        if len(content) > limit:
            raise Fault(413, f"{part.name} is larger than {limit} bytes", param=part.name)
    return bytes(content)


async def _timed(read: Awaitable[Read]) -> Read:
    try:
        async with asyncio.timeout(_QUIET_S):
            return await read
    except TimeoutError:
        raise Fault(408, f"Nothing came for {_QUIET_S} seconds", code="timeout") from None


def _samples(audio: bytes) -> bytes:
    """The PCM alone, whole samples of it."""
    if audio.startswith(_RIFF):
        audio = _under_header(audio)
    pcm = audio[: len(audio) // 2 * 2]
    if len(pcm) < _SHORTEST_S * SAMPLE_RATE * 2:
        message = f"The audio is shorter than {_SHORTEST_S} seconds"
        raise Fault(400, message, param="file", code="audio_too_short")
    return pcm


def _under_header(audio: bytes) -> bytes:
    try:
        wav = parse_wav(audio)
    except ValueError:
        wav = None
    if wav is None or (wav.format_tag, wav.channels, wav.sample_rate, wav.bits) != (PCM, 1, SAMPLE_RATE, 16):
        raise Fault(400, "The audio must be 16-bit mono PCM at 16 kHz", param="file")
    end = None if wav.data_bytes is None else wav.data_offset + wav.data_bytes
    return audio[wav.data_offset : end]
