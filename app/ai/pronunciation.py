"""The pronunciation endpoint: parameters, followed by audio as it arrives; one JSON response (§4.18)."""

import asyncio
from functools import partial
from typing import Annotated, Any, Literal, Self

from aiohttp import web
from pydantic import AfterValidator, Field, model_validator

from actors.plays.pronunciation import PCM_RATE, AssessmentPlan, assess
from actors.runtime.actor import Actor
from actors.runtime.mailbox import Cancel
from app.ai.opening import open_stream
from app.ai.upload import pump_audio
from app.http.openapi.events import UnitPrice
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Chunked
from app.http.rows.replies import Json
from app.http.rows.row_errors import response_to
from streams.audio.pcm import PcmDecoder
from streams.languages import MAX_CHARACTERS, LanguageCode
from streams.tasks import background
from streams.wire.errors import ServiceError
from streams.wire.model import Model, not_blank
from vendors.protocols import AssessmentRequest

_POLL_S = 0.5


def _words(text: str) -> str:
    if not any(letter.isalnum() for letter in not_blank(text)):
        raise ValueError("must contain a word")
    return text


class AssessmentParams(Model):
    """The reference text and the grading options."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return (
            {name: value for name, value in given.items() if value is not None}
            if isinstance(given, dict)
            else given
        )

    language: LanguageCode = Field(default="en-US", max_length=MAX_CHARACTERS)
    reference_text: Annotated[str, AfterValidator(_words)] = Field(max_length=16_384)
    grading_system: Literal["FivePoint", "HundredMark"] = "HundredMark"
    """`FivePoint` grades from 0 to 5, `HundredMark` from 0 to 100."""
    granularity: Literal["Phoneme", "Word", "FullText"] = "Phoneme"
    enable_miscue: bool = False
    """Whether omitted and inserted words are marked."""
    enable_prosody_assessment: bool = False
    """Whether stress, intonation, speed and rhythm are graded as well."""


class PronunciationParams(Model):
    """The first JSON object of the body."""

    strategy: Annotated[str, AfterValidator(not_blank)]
    """Name of a pronunciation strategy."""
    data: AssessmentParams

    @classmethod
    def of(cls, value: Any, *, short_paths: bool = True) -> Self:
        """Validate a decoded JSON value. Errors name a field of `data` without `data`, as the interface does."""
        return super().of(value, short_paths=short_paths)


class PronunciationReply(Model):
    """The text with its scores, and what the vendor has sent."""

    text: str
    """The recognized text."""
    raw_data: dict[str, Any]
    """The vendor's raw result: `Duration`, `Id`, and `NBest` with `Confidence` and `PronunciationAssessment`."""
    unit_price: UnitPrice
    strategy: str


async def pronunciation(call: Call, body: Chunked[PronunciationParams]) -> web.Response | Json[PronunciationReply]:
    """Assess the pronunciation of a text read aloud.

    The body is a JSON object of parameters followed by the audio as one base64 text. If you encode it in pieces,
    make each piece except the last a multiple of 3 bytes long. The audio is PCM, 16 kHz, mono, 16 bits, raw or with
    a WAV header of that format, and at most 10 MiB. It is assessed while it arrives; the response follows its end.
    An error in the audio is reported as soon as it is detected. `X-Service-Stream-Id` in the response identifies
    the assessment. The guide *Streams* (`docs/guides/streams.md`) makes `hello.pcm`, the file of the example.
    """
    plan = _plan(call, body.parameters)
    actor = await open_stream(call, "pronunciation", partial(assess, plan=plan), readable=False)
    assert isinstance(actor, Actor), "only a request with an idempotency key can find an existing stream"
    try:
        async with background(pump_audio(call, body.rest, actor, plan.pcm)):
            outcome = await _outcome(call.request, actor)
    finally:
        actor.send(Cancel(aborted=True))  # The result cannot be fetched later.
    headers = {"X-Service-Stream-Id": actor.stream_id}
    if not isinstance(outcome, ServiceError):
        return Json(outcome, headers)
    response = response_to(call.request, outcome)
    response.headers.update(headers)
    return response


def _plan(call: Call, params: PronunciationParams) -> AssessmentPlan:
    data = params.data
    return AssessmentPlan(
        strategy=params.strategy,
        request=AssessmentRequest(
            reference_text=data.reference_text,
            language=data.language,
            grading_system=data.grading_system,
            granularity=data.granularity,
            enable_miscue=data.enable_miscue,
            enable_prosody_assessment=data.enable_prosody_assessment,
        ),
        accounts=call.services.strategies.assessors(call.app_id, params.strategy, language=data.language),
        pcm=PcmDecoder(PCM_RATE),
    )


async def _outcome(request: web.Request, actor: Actor) -> dict[str, Any] | ServiceError:
    """Return the outcome of the stream. Raises `ConnectionError` when the client has disconnected.

    The connection is polled, because nothing is written meanwhile that would reveal the disconnect.
    """
    while True:
        await asyncio.wait([actor.outcome], timeout=_POLL_S)
        if actor.outcome.done():
            return actor.outcome.result()
        if request.transport is None or request.transport.is_closing():
            raise ConnectionResetError("the client has left")
