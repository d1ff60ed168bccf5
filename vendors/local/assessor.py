"""The process in which pronunciations are assessed: pocketsphinx holds all threads of the one it runs in."""

import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

from vendors.local.aligning import FRAMES_A_SECOND, Aligner
from vendors.local.grading import Said, graded
from vendors.local.plan import Piece, Segment, plan
from vendors.local.prosody import prosody_of
from vendors.protocols import AssessmentRequest

_RATE = 16_000


@dataclass(frozen=True, slots=True)
class Question:
    """Audio, 16-bit mono at 16 kHz, what was heard in it, and what was to be said."""

    pcm: bytes
    segments: Sequence[Segment]
    request: AssessmentRequest


def serve(line: Connection) -> None:
    """Answer `Question`s with the graded part of the result until the line ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for the process that asks, which ends this one
    try:
        aligner = Aligner()
    except Exception as error:  # noqa: BLE001 - told to who asks
        line.send((f"{type(error).__name__}: {error}", None))
        return
    line.send((None, None))
    try:
        while True:
            line.send(_answered(aligner, line.recv()))
    except (EOFError, ConnectionError):
        return


def _answered(aligner: Aligner, question: Question) -> tuple[str | None, dict[str, Any] | None]:
    try:
        return None, assess(aligner, question)
    except Exception as error:  # noqa: BLE001 - told to who asks
        traceback.print_exc(file=sys.stderr)
        return f"{type(error).__name__}: {error}", None


def assess(aligner: Aligner, question: Question) -> dict[str, Any]:
    """The scores of the whole and of each word."""
    request = question.request
    pieces = plan(request.reference_text, question.segments, miscue=request.enable_miscue)
    words = [word for piece in pieces for word in _said(aligner, piece, question.pcm)]
    prosody = None
    if request.enable_prosody_assessment:
        prosody = prosody_of([word.sounds for word in words if word.sounds], question.pcm)
    return graded(words, prosody, request)


def _said(aligner: Aligner, piece: Piece, pcm: bytes) -> list[Said]:
    begin = round(piece.begin_s * FRAMES_A_SECOND)
    end = round(piece.end_s * FRAMES_A_SECOND)
    frame_bytes = 2 * _RATE // FRAMES_A_SECOND
    found = aligner.align(piece.slots, pcm[begin * frame_bytes : end * frame_bytes])
    return [
        Said(slot, [replace(sound, begin=begin + sound.begin) for sound in sounds])
        for slot, sounds in zip(piece.slots, found, strict=True)
    ]
