"""Scores of a pronunciation in the form of vendor A's detailed result, out of how well each sound fits. Pure.

Weaker than a vendor: the bounds come from a few voices of grown native speakers. A wrong word is told from the
right one with some certainty, a near one is not, and it is no judge of an accent.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from vendors.local.aligning import FRAMES_A_SECOND, Sound
from vendors.local.plan import Kind, Slot
from vendors.local.prosody import Prosody
from vendors.local.syllables import syllables
from vendors.protocols import AssessmentRequest
from vendors.speech.azure_joining import overall

Fields = dict[str, Any]

TICKS_A_SECOND = 10_000_000
_TICKS_A_FRAME = TICKS_A_SECOND // FRAMES_A_SECOND

_HALF_GOOD, _STEP = -55.0, 11.0
"""A goodness in the middle between right and wrong words, and what makes a score fall from 73 to 50."""
_DOUBT_FRAMES = 6
"""Of the goodness around it: a short sound or word alone says little."""
_MISPRONOUNCED_BELOW = 60.0
_NOT_SAID_BELOW = 25.0
"""Of a word that the recogniser did not hear either."""

_PAUSE_FRAMES = 60
"""What a pause has that is more than this is hesitation."""
_SLOW_SOUNDS_A_SECOND = 7.0


@dataclass(frozen=True, slots=True)
class Said:
    """A word with the sounds that were found for it, none where it was not said; frames from the audio's start."""

    slot: Slot
    sounds: Sequence[Sound]

    @property
    def begin(self) -> int:
        return self.sounds[0].begin

    @property
    def end(self) -> int:
        return self.sounds[-1].begin + self.sounds[-1].frames


@dataclass(frozen=True, slots=True)
class _Graded:
    said: Said
    score: float
    sounds: Sequence[float]
    error: str

    @property
    def counts(self) -> bool:
        return self.error != "Insertion"


def graded(words: Sequence[Said], prosody: Prosody | None, request: AssessmentRequest) -> Fields:
    """`PronunciationAssessment` of the whole, and `Words` unless the granularity leaves them out."""
    usual = _usual(words)
    marks = [mark for word in words if (mark := _graded(word, usual, request)) is not None]
    counted = [mark for mark in marks if mark.counts]
    spoken = [word for word in words if word.sounds]
    complete = sum(_was_said(mark) for mark in counted)
    scores = {
        "AccuracyScore": fmean(mark.score for mark in counted) if counted else 0.0,
        "FluencyScore": _fluency(spoken),
        "CompletenessScore": 100.0 * complete / len(counted) if counted else 0.0,
    }
    if request.enable_prosody_assessment:
        scores["ProsodyScore"] = prosody.score if prosody else 0.0
    scores["PronScore"] = overall(list(scores.values()))
    told: Fields = {"PronunciationAssessment": {name: _told(score, request) for name, score in scores.items()}}
    if request.granularity != "FullText":
        told["Words"] = [_word(mark, request) for mark in marks]
    return told


def _usual(words: Sequence[Said]) -> float:
    goodness = [sound.goodness for word in words if word.slot.sure for sound in word.sounds]
    return max(_HALF_GOOD, fmean(goodness)) if goodness else _HALF_GOOD


def _graded(word: Said, usual: float, request: AssessmentRequest) -> _Graded | None:
    """None for what was heard beside the reference when nobody asks for that, or when it was not said after all."""
    extra = word.slot.kind is Kind.EXTRA
    if extra and not (word.sounds and request.enable_miscue):
        return None
    missed = request.enable_miscue and word.slot.kind is Kind.MISSING
    if not word.sounds:
        return _Graded(word, 0.0, (), "Omission" if missed else "Mispronunciation")
    alone = fmean(sound.goodness for sound in word.sounds)
    goodness = _weighed(alone, word.end - word.begin, usual)
    score = _score(goodness)
    if missed and score < _NOT_SAID_BELOW:
        return _Graded(Said(word.slot, ()), 0.0, (), "Omission")
    sounds = [_score(_weighed(sound.goodness, sound.frames, goodness)) for sound in word.sounds]
    error = "Insertion" if extra else "Mispronunciation" if score < _MISPRONOUNCED_BELOW else "None"
    return _Graded(word, score, sounds, error)


def _weighed(goodness: float, frames: int, around: float) -> float:
    return (goodness * frames + around * _DOUBT_FRAMES) / (frames + _DOUBT_FRAMES)


def _score(goodness: float) -> float:
    return 100.0 / (1.0 + math.exp(min(50.0, (_HALF_GOOD - goodness) / _STEP)))


def _was_said(mark: _Graded) -> bool:
    """A word that was heard counts however it was spoken."""
    return mark.said.slot.kind is Kind.FITS or mark.error == "None"


def _fluency(spoken: Sequence[Said]) -> float:
    """The share of the time that is no hesitation, less where the speech itself is slow."""
    if not spoken:
        return 0.0
    pauses = [after.begin - before.end for before, after in pairwise(spoken)]
    hesitation = sum(max(0, pause - _PAUSE_FRAMES) for pause in pauses)
    length = max(1, spoken[-1].end - spoken[0].begin)
    speaking = max(1, sum(word.end - word.begin for word in spoken))
    pace = sum(len(word.sounds) for word in spoken) * FRAMES_A_SECOND / speaking
    return 100.0 * (1 - hesitation / length) * min(1.0, pace / _SLOW_SOUNDS_A_SECOND)


def _word(mark: _Graded, request: AssessmentRequest) -> Fields:
    said = mark.said
    told: Fields = {
        "Word": said.slot.word,
        **(_time(said.begin, said.end) if said.sounds else {"Offset": 0, "Duration": 0}),
        "PronunciationAssessment": {"AccuracyScore": _told(mark.score, request), "ErrorType": mark.error},
    }
    if request.granularity == "Phoneme":
        told["Syllables"] = list(_syllables(mark, request))
        told["Phonemes"] = [
            {"Phoneme": _vendors_name(sound.phone), **_scored(score, request), **_time_of(sound)}
            for sound, score in zip(said.sounds, mark.sounds, strict=True)
        ]
    return told


def _syllables(mark: _Graded, request: AssessmentRequest) -> Iterator[Fields]:
    sounds = mark.said.sounds
    for begin, end in syllables([sound.phone for sound in sounds]):
        name = "".join(_vendors_name(sound.phone) for sound in sounds[begin:end])
        score = fmean(mark.sounds[begin:end])
        time = _time(sounds[begin].begin, sounds[end - 1].begin + sounds[end - 1].frames)
        yield {"Syllable": name, **_scored(score, request), **time}


def _vendors_name(phone: str) -> str:
    """Of vendor A's alphabet for English, which is that of the dictionary but for one letter."""
    return "h" if phone == "HH" else phone.lower()


def _scored(score: float, request: AssessmentRequest) -> Fields:
    return {"PronunciationAssessment": {"AccuracyScore": _told(score, request)}}


def _told(score: float, request: AssessmentRequest) -> float:
    return round(score / 20 if request.grading_system == "FivePoint" else score, 1)


def _time_of(sound: Sound) -> Fields:
    return _time(sound.begin, sound.begin + sound.frames)


def _time(begin: int, end: int) -> Fields:
    return {"Offset": begin * _TICKS_A_FRAME, "Duration": (end - begin) * _TICKS_A_FRAME}
