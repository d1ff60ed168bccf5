"""The worker process for pronunciation assessment, because pocketsphinx blocks all threads of its process."""

import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from vendors.local.assessment.aligning import FRAMES_PER_SECOND, Aligner
from vendors.local.assessment.grading import AlignedWord, grade
from vendors.local.assessment.plan import Piece, Segment, plan
from vendors.local.assessment.prosody import prosody_of
from vendors.protocols import AssessmentRequest

_RATE = 16_000


@dataclass(frozen=True, slots=True)
class AssessmentJob:
    """The audio (16-bit mono at 16 kHz), the recognized segments and the request."""

    pcm: bytes
    segments: Sequence[Segment]
    request: AssessmentRequest


def serve(connection: Connection) -> None:
    """Handle `AssessmentJob`s until the connection is closed. Each result is the graded part of the assessment."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent handles it and ends this process.
    try:
        aligner = Aligner()
    except Exception as error:  # noqa: BLE001 - sent to the parent
        connection.send((f"{type(error).__name__}: {error}", None))
        return
    connection.send((None, None))
    try:
        while True:
            connection.send(_handle(aligner, connection.recv()))
    except (EOFError, ConnectionError):
        return


def _handle(aligner: Aligner, job: AssessmentJob) -> tuple[str | None, dict[str, Any] | None]:
    try:
        return None, assess(aligner, job)
    except Exception as error:  # noqa: BLE001 - sent to the parent
        traceback.print_exc(file=sys.stderr)
        return f"{type(error).__name__}: {error}", None


def assess(aligner: Aligner, job: AssessmentJob) -> dict[str, Any]:
    """Return the overall scores and those of each word."""
    request = job.request
    pieces = plan(request.reference_text, job.segments, miscue=request.enable_miscue)
    words = [word for piece in pieces for word in _align(aligner, piece, job.pcm)]
    prosody = None
    if request.enable_prosody_assessment:
        prosody = prosody_of([word.sounds for word in words if word.sounds], job.pcm)
    return grade(words, prosody, request)


def _align(aligner: Aligner, piece: Piece, pcm: bytes) -> list[AlignedWord]:
    begin = round(piece.begin_s * FRAMES_PER_SECOND)
    end = round(piece.end_s * FRAMES_PER_SECOND)
    frame_bytes = 2 * _RATE // FRAMES_PER_SECOND
    alignments = aligner.align(piece.slots, pcm[begin * frame_bytes : end * frame_bytes])
    return [
        AlignedWord(slot, [replace(sound, begin=begin + sound.begin) for sound in sounds])
        for slot, sounds in zip(piece.slots, alignments, strict=True)
    ]
