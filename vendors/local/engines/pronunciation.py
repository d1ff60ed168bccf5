"""Assesses English pronunciation: whisper recognizes the words, pocketsphinx grades their phonemes.

Less accurate than a vendor, see `grading`. The recognized words are the `text` and determine omissions and
insertions. Where they differ from the reference, the phonemes decide. whisper prefers plausible text, so it may
miss a word that was repeated by mistake.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from statistics import fmean
from typing import Any

from streams.audio.audio import wav_header
from streams.wire.ids import new_id
from vendors.local.assessment.assessor import AssessmentJob, serve
from vendors.local.assessment.grading import TICKS_PER_SECOND
from vendors.local.assessment.plan import Segment
from vendors.local.engines import whisper
from vendors.local.engines.engine import Engine, Put
from vendors.local.engines.faults import Fault
from vendors.local.engines.packages import Package
from vendors.local.engines.protocols import Assessed, RecognizerEngine, TranscribedSegment
from vendors.local.engines.worker import Worker, WorkerLate
from vendors.protocols import AssessmentRequest
from vendors.speech.azure.miscues import units
from vendors.speech.decoding import SAMPLE_RATE

_MODEL = "model/en-us"
_PHONEME_MODEL = Package(
    "pocketsphinx",
    {
        f"{_MODEL}/en-us/mdef": "2360f9a86889c1cfee8bd618a0269387911e5fb2920a594f506b18b8c79683b0",
        f"{_MODEL}/en-us/means": "832019e32cac12eb318964f96f469034acb12d0348eeddc3831831a100cb4dd4",
        f"{_MODEL}/en-us/variances": "b00d696f85e96834fc10f8e5f06428d8c4db6bffdbe5845b6f69bf6efbc48fa5",
        f"{_MODEL}/en-us/sendump": "8c9564c0d5bef69ca9d9bf1014abe162f071644cf02cf1fa8a483c3dc165a7a8",
        f"{_MODEL}/cmudict-en-us.dict": "20b5c293e1f311fb375fe067e500ec5636f4fc7af5594967263696def9b23bfe",
        f"{_MODEL}/en-us-phone.lm.bin": "c57e0fa4191b096b1279cfe3a77927f52568fdecfc6624ddb5cec9527c763a54",
    },
)
NEEDS = (_PHONEME_MODEL, Package("espeakng_loader"), Package("numpy"), *whisper.NEEDS)

_MAX_REQUESTS = 8
_LIMIT_S, _LIMIT_PER_S = 30, 1.0


class Pronunciation:
    """Runs one assessment at a time in a separate process, which is killed if the request is cancelled."""

    def __init__(self, recognizer: RecognizerEngine) -> None:
        self._recognizer = recognizer
        self._worker = Worker(serve, name="pocketsphinx")
        self._engine = Engine("pocketsphinx", self._load, max_requests=_MAX_REQUESTS)

    @property
    def fault(self) -> str | None:
        return self._engine.fault or self._recognizer.fault

    @property
    def pid(self) -> int | None:
        """The id of the process if it runs."""
        return self._worker.pid

    async def assess(self, pcm: bytes, request: AssessmentRequest) -> Assessed:
        if not units(request.reference_text, gap=" "):
            raise Fault(400, "reference_text contains no words", param="reference_text")
        with self._engine.slot():
            wav = wav_header(SAMPLE_RATE, data_bytes=len(pcm)) + pcm
            transcription = await self._recognizer.transcribe(wav, prompt=None)
            segments = [segment for segment in transcription.segments if units(segment.text, gap=" ")]
            if not segments:
                return Assessed(transcription.seconds, "", _no_match(transcription.seconds))
            graded = await self._grade(pcm, segments, request, _LIMIT_S + _LIMIT_PER_S * transcription.seconds)
        text = "".join(segment.text for segment in segments).strip()
        return Assessed(transcription.seconds, text, _result(text, segments, graded))

    async def _grade(
        self, pcm: bytes, segments: Sequence[TranscribedSegment], request: AssessmentRequest, limit_s: float
    ) -> Mapping[str, Any]:
        rough_segments = [Segment(segment.start_s, segment.end_s, segment.text) for segment in segments]
        grades: Mapping[str, Any] = {}
        async with self._engine.run(partial(_run, AssessmentJob(pcm, rough_segments, request), limit_s)) as output:
            async for ready in output:
                grades = next((item for item in ready if item is not None), grades)
        return grades

    def close(self) -> None:
        self._engine.close()
        self._worker.stop()

    def _load(self) -> Worker:
        # If the process was killed or is slow to start, the first call starts it again.
        with suppress(EOFError, ConnectionError, WorkerLate):
            self._worker.start()
        return self._worker


def _run(job: AssessmentJob, limit_s: float, worker: Worker, put: Put[Mapping[str, Any] | None]) -> None:
    try:
        result = worker.call(job, limit_s=limit_s, is_wanted=lambda: put(None))
    except WorkerLate:
        raise Fault(
            503, f"The assessment took longer than {limit_s:.0f} seconds", error_type="server_error", code="timeout"
        ) from None
    put(result)


def _no_match(seconds: float) -> dict[str, Any]:
    return {
        "Id": new_id(),
        "RecognitionStatus": "NoMatch",
        "Offset": 0,
        "Duration": round(seconds * TICKS_PER_SECOND),
        "DisplayText": "",
        "NBest": [],
    }


def _result(text: str, segments: Sequence[TranscribedSegment], graded: Mapping[str, Any]) -> dict[str, Any]:
    """Return vendor A's detailed result. `Confidence` is that of the recognized words, not of their phonemes."""
    begin_s, end_s = segments[0].start_s, segments[-1].end_s
    lexical = " ".join(units(text, gap=" "))
    best = {
        "Confidence": round(math.exp(min(0.0, fmean(segment.avg_logprob for segment in segments))), 6),
        "Lexical": lexical,
        "ITN": lexical,
        "MaskedITN": lexical,
        "Display": text,
        **graded,
    }
    return {
        "Id": new_id(),
        "RecognitionStatus": "Success",
        "Offset": round(begin_s * TICKS_PER_SECOND),
        "Duration": round((end_s - begin_s) * TICKS_PER_SECOND),
        "DisplayText": text,
        "NBest": [best],
    }
