"""How sandboxed Azure grades pronunciation: a word's score is its own, lower where the reference has none such.

Pure; computed by the vendor's rules, not by those of our client.
"""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any
from zlib import crc32

from streams.wire.codec import loads
from vendors.sandbox.content import Timed

TICKS_PER_MS = 10_000
_LOWEST_SOUND = 60
_GRADINGS = {"FivePoint": 20, "HundredMark": 1}
_GRANULARITIES = ("Phoneme", "Word", "FullText")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an assessment is asked for; the defaults are the vendor's."""

    reference: str
    divisor: int = 20
    granularity: str = "Phoneme"
    comprehensive: bool = False
    miscue: bool = False
    prosody: bool = False

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> "Wanted":
        """Of the parameters in either spelling; `ValueError` names the one that is wrong."""
        told = {name[:1].lower() + name[1:]: value for name, value in asked.items()}
        grading, granularity = told.get("gradingSystem", "FivePoint"), told.get("granularity", "Phoneme")
        if grading not in _GRADINGS:
            raise ValueError("gradingSystem")
        if granularity not in _GRANULARITIES:
            raise ValueError("granularity")
        return cls(
            reference=str(told.get("referenceText", "")),
            divisor=_GRADINGS[grading],
            granularity=granularity,
            comprehensive=told.get("dimension", "Basic") == "Comprehensive",
            miscue=str(told.get("enableMiscue", False)).lower() == "true",
            prosody=str(told.get("enableProsodyAssessment", False)).lower() == "true",
        )

    @classmethod
    def of_header(cls, header: str) -> "Wanted":
        """Of the header `Pronunciation-Assessment`."""
        asked = loads(b64decode(header, validate=True))
        if not isinstance(asked, dict):
            raise ValueError("Pronunciation-Assessment")  # noqa: TRY004 - a header's value, not a type
        return cls.of(asked)


def graded(words: Sequence[Timed], wanted: Wanted, *, alone: bool) -> dict[str, Any]:
    """Scores and words of a phrase, as sockets tell them. Only where it is `alone` miscues are marked."""
    marked = _marked(words, wanted, alone=alone and wanted.miscue)
    counted = [mark for mark in marked if mark.error != "Insertion"]
    sound = sum(mark.error == "None" for mark in marked)
    accuracy = sum(mark.score for mark in counted) / max(1, len(counted))
    scores: dict[str, float] = {"AccuracyScore": accuracy}
    if wanted.comprehensive:
        scores["FluencyScore"] = 95.0
        scores["CompletenessScore"] = min(100.0, 100 * sound / max(1, len(wanted.reference.split())))
        if wanted.prosody:
            scores["ProsodyScore"] = 85.0
        scores["PronScore"] = _overall(list(scores.values()))
    told: dict[str, Any] = {
        "PronunciationAssessment": {name: round(score / wanted.divisor, 1) for name, score in scores.items()}
    }
    if wanted.granularity != "FullText":
        told["Words"] = [mark.told(wanted) for mark in marked]
    return told


def flat(best: Mapping[str, Any]) -> dict[str, Any]:
    """The same as it is told over HTTP: scores beside what they are scores of."""
    told: dict[str, Any] = {}
    for name, value in best.items():
        if name == "PronunciationAssessment":
            told |= value
        elif isinstance(value, list):
            told[name] = [flat(item) for item in value]
        else:
            told[name] = value
    return told


@dataclass(frozen=True, slots=True)
class _Mark:
    text: str
    score: float
    error: str
    begin_ms: int = 0
    end_ms: int = 0

    def told(self, wanted: Wanted) -> dict[str, Any]:
        assessed: dict[str, Any] = {"AccuracyScore": round(self.score / wanted.divisor, 1)}
        if wanted.comprehensive:
            assessed["ErrorType"] = self.error
        if wanted.prosody and self.end_ms:
            assessed["Feedback"] = {"Prosody": {"Break": {"ErrorTypes": ["None"], "BreakLength": 0}}}
        word: dict[str, Any] = {
            "Word": self.text,
            **_time(self.begin_ms, self.end_ms),
            "PronunciationAssessment": assessed,
        }
        if wanted.granularity == "Phoneme" and self.end_ms:
            score = {"AccuracyScore": assessed["AccuracyScore"]}
            step = (self.end_ms - self.begin_ms) / max(1, len(self.text))
            word["Syllables"] = [
                {
                    "Syllable": self.text,
                    "Grapheme": self.text,
                    "PronunciationAssessment": score,
                    **_time(self.begin_ms, self.end_ms),
                }
            ]
            word["Phonemes"] = [
                {
                    "Phoneme": letter,
                    "PronunciationAssessment": score,
                    **_time(self.begin_ms + round(at * step), self.begin_ms + round((at + 1) * step)),
                }
                for at, letter in enumerate(self.text)
            ]
        return word


def _time(begin_ms: int, end_ms: int) -> dict[str, int]:
    return {"Offset": begin_ms * TICKS_PER_MS, "Duration": (end_ms - begin_ms) * TICKS_PER_MS}


def _marked(words: Sequence[Timed], wanted: Wanted, *, alone: bool) -> list[_Mark]:
    heard = [lexical(word.text) for word in words]
    reference = [lexical(word) for word in wanted.reference.split()]
    marks: list[_Mark] = []
    matcher = SequenceMatcher(None, reference, heard, autojunk=False)
    for tag, begin, end, heard_begin, heard_end in matcher.get_opcodes():
        for at in range(heard_begin, heard_end):
            score = float(70 + crc32(heard[at].encode()) % 31) if tag == "equal" or not reference else 40.0
            error = "None" if score >= _LOWEST_SOUND else "Insertion" if alone else "Mispronunciation"
            marks.append(_Mark(heard[at], score, error, words[at].begin_ms, words[at].end_ms))
        if alone and tag in {"delete", "replace"}:
            marks += [_Mark(word, 0.0, "Omission") for word in reference[begin:end]]
    return marks


def lexical(word: str) -> str:
    return word.strip(".,;:!?\"'()").lower()


def _overall(scores: Sequence[float]) -> float:
    lowest, *others = sorted(scores)
    return (0.4 if len(scores) == 4 else 0.6) * lowest + 0.2 * sum(others)
