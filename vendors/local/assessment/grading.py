"""Grades pronunciation in the form of vendor A's detailed result, from the goodness of phonemes. Does no I/O.

Less accurate than a vendor: the thresholds come from a few adult native speakers. It detects a wrong word with some
certainty, but not a slightly wrong one, and it cannot judge accents.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from vendors.local.assessment.aligning import FRAMES_PER_SECOND, Sound
from vendors.local.assessment.plan import Kind, Slot
from vendors.local.assessment.prosody import Prosody
from vendors.local.assessment.syllables import syllables
from vendors.protocols import AssessmentRequest
from vendors.speech.azure.merging import overall

Fields = dict[str, Any]

TICKS_PER_SECOND = 10_000_000
_TICKS_PER_FRAME = TICKS_PER_SECOND // FRAMES_PER_SECOND

_MIDDLE_GOODNESS, _GOODNESS_STEP = -55.0, 11.0
"""The goodness between right and wrong words (score 50), and the step that raises a score from 50 to 73."""
_CONTEXT_FRAMES = 6
"""The weight of the surrounding goodness in frames, because a short phoneme or word is unreliable by itself."""
_MISPRONOUNCED_BELOW = 60.0
_OMITTED_BELOW = 25.0
"""The score below which a word that the recognizer did not find counts as omitted."""

_PAUSE_FRAMES = 60
"""The part of a pause beyond this is hesitation."""
_SLOW_SOUNDS_PER_SECOND = 7.0


@dataclass(frozen=True, slots=True)
class AlignedWord:
    """A word with its phonemes, empty if it was not spoken. Frames count from the start of the audio."""

    slot: Slot
    sounds: Sequence[Sound]

    @property
    def begin(self) -> int:
        return self.sounds[0].begin

    @property
    def end(self) -> int:
        return self.sounds[-1].begin + self.sounds[-1].frames


@dataclass(frozen=True, slots=True)
class _GradedWord:
    aligned: AlignedWord
    score: float
    sounds: Sequence[float]
    error: str

    @property
    def counts(self) -> bool:
        return self.error != "Insertion"


def grade(words: Sequence[AlignedWord], prosody: Prosody | None, request: AssessmentRequest) -> Fields:
    """Return the overall `PronunciationAssessment`, and `Words` unless the granularity omits them."""
    baseline = _baseline(words)
    marks = [mark for word in words if (mark := _grade(word, baseline, request)) is not None]
    counted = [mark for mark in marks if mark.counts]
    spoken = [word for word in words if word.sounds]
    spoken_count = sum(_was_spoken(mark) for mark in counted)
    scores = {
        "AccuracyScore": fmean(mark.score for mark in counted) if counted else 0.0,
        "FluencyScore": _fluency(spoken),
        "CompletenessScore": 100.0 * spoken_count / len(counted) if counted else 0.0,
    }
    if request.enable_prosody_assessment:
        scores["ProsodyScore"] = prosody.score if prosody else 0.0
    scores["PronScore"] = overall(list(scores.values()))
    result: Fields = {"PronunciationAssessment": {name: _scaled(score, request) for name, score in scores.items()}}
    if request.granularity != "FullText":
        result["Words"] = [_word(mark, request) for mark in marks]
    return result


def _baseline(words: Sequence[AlignedWord]) -> float:
    goodness = [sound.goodness for word in words if word.slot.sure for sound in word.sounds]
    return max(_MIDDLE_GOODNESS, fmean(goodness)) if goodness else _MIDDLE_GOODNESS


def _grade(word: AlignedWord, baseline: float, request: AssessmentRequest) -> _GradedWord | None:
    """Grade a word. Return `None` for an extra word that is not requested or was not spoken."""
    extra = word.slot.kind is Kind.EXTRA
    if extra and not (word.sounds and request.enable_miscue):
        return None
    missed = request.enable_miscue and word.slot.kind is Kind.MISSING
    if not word.sounds:
        return _GradedWord(word, 0.0, (), "Omission" if missed else "Mispronunciation")
    own_goodness = fmean(sound.goodness for sound in word.sounds)
    goodness = _weighted(own_goodness, word.end - word.begin, baseline)
    score = _score(goodness)
    if missed and score < _OMITTED_BELOW:
        return _GradedWord(AlignedWord(word.slot, ()), 0.0, (), "Omission")
    sounds = [_score(_weighted(sound.goodness, sound.frames, goodness)) for sound in word.sounds]
    error = "Insertion" if extra else "Mispronunciation" if score < _MISPRONOUNCED_BELOW else "None"
    return _GradedWord(word, score, sounds, error)


def _weighted(goodness: float, frames: int, surrounding: float) -> float:
    return (goodness * frames + surrounding * _CONTEXT_FRAMES) / (frames + _CONTEXT_FRAMES)


def _score(goodness: float) -> float:
    return 100.0 / (1.0 + math.exp(min(50.0, (_MIDDLE_GOODNESS - goodness) / _GOODNESS_STEP)))


def _was_spoken(mark: _GradedWord) -> bool:
    """Return whether a word counts as spoken. A recognized word does, whatever its score."""
    return mark.aligned.slot.kind is Kind.FITS or mark.error == "None"


def _fluency(spoken: Sequence[AlignedWord]) -> float:
    """Return the share of time without hesitation, reduced if the speech itself is slow."""
    if not spoken:
        return 0.0
    pauses = [following.begin - previous.end for previous, following in pairwise(spoken)]
    hesitation = sum(max(0, pause - _PAUSE_FRAMES) for pause in pauses)
    length = max(1, spoken[-1].end - spoken[0].begin)
    speaking = max(1, sum(word.end - word.begin for word in spoken))
    pace = sum(len(word.sounds) for word in spoken) * FRAMES_PER_SECOND / speaking
    return 100.0 * (1 - hesitation / length) * min(1.0, pace / _SLOW_SOUNDS_PER_SECOND)


def _word(mark: _GradedWord, request: AssessmentRequest) -> Fields:
    aligned = mark.aligned
    result: Fields = {
        "Word": aligned.slot.word,
        **(_time(aligned.begin, aligned.end) if aligned.sounds else {"Offset": 0, "Duration": 0}),
        "PronunciationAssessment": {"AccuracyScore": _scaled(mark.score, request), "ErrorType": mark.error},
    }
    if request.granularity == "Phoneme":
        result["Syllables"] = list(_syllables(mark, request))
        result["Phonemes"] = [
            {"Phoneme": _vendor_name(sound.phone), **_scored(score, request), **_time_of(sound)}
            for sound, score in zip(aligned.sounds, mark.sounds, strict=True)
        ]
    return result


def _syllables(mark: _GradedWord, request: AssessmentRequest) -> Iterator[Fields]:
    sounds = mark.aligned.sounds
    for begin, end in syllables([sound.phone for sound in sounds]):
        name = "".join(_vendor_name(sound.phone) for sound in sounds[begin:end])
        score = fmean(mark.sounds[begin:end])
        time = _time(sounds[begin].begin, sounds[end - 1].begin + sounds[end - 1].frames)
        yield {"Syllable": name, **_scored(score, request), **time}


def _vendor_name(phone: str) -> str:
    """Return vendor A's English name of a phoneme: that of CMU's dictionary in lower case, with one exception."""
    return "h" if phone == "HH" else phone.lower()


def _scored(score: float, request: AssessmentRequest) -> Fields:
    return {"PronunciationAssessment": {"AccuracyScore": _scaled(score, request)}}


def _scaled(score: float, request: AssessmentRequest) -> float:
    return round(score / 20 if request.grading_system == "FivePoint" else score, 1)


def _time_of(sound: Sound) -> Fields:
    return _time(sound.begin, sound.begin + sound.frames)


def _time(begin: int, end: int) -> Fields:
    return {"Offset": begin * _TICKS_PER_FRAME, "Duration": (end - begin) * _TICKS_PER_FRAME}
