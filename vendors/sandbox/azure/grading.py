"""Pronunciation grades of the sandboxed Azure: the score of a word depends only on the word and the reference text.

This module does no I/O. It follows the vendor's rules and shares no code with Parley's client.
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
_LOWEST_CORRECT = 60
_GRADINGS = {"FivePoint": 20, "HundredMark": 1}
_GRANULARITIES = ("Phoneme", "Word", "FullText")


@dataclass(frozen=True, slots=True)
class AssessmentOptions:
    """The parameters of an assessment, with the vendor's defaults."""

    reference: str
    divisor: int = 20
    granularity: str = "Phoneme"
    comprehensive: bool = False
    miscue: bool = False
    prosody: bool = False
    spoken_phonemes: int = 0
    """How many of the phonemes that it has heard are reported for each phoneme."""

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> "AssessmentOptions":
        """Parse parameters in camel or Pascal case. Raise `ValueError` with the name of an invalid parameter."""
        values = {name[:1].lower() + name[1:]: value for name, value in parameters.items()}
        grading, granularity = values.get("gradingSystem", "FivePoint"), values.get("granularity", "Phoneme")
        if grading not in _GRADINGS:
            raise ValueError("gradingSystem")
        if granularity not in _GRANULARITIES:
            raise ValueError("granularity")
        spoken_phonemes = values.get("nBestPhonemeCount", 0)
        if not isinstance(spoken_phonemes, int) or spoken_phonemes < 0:
            raise ValueError("nBestPhonemeCount")
        return cls(
            reference=str(values.get("referenceText", "")),
            divisor=_GRADINGS[grading],
            granularity=granularity,
            comprehensive=values.get("dimension", "Basic") == "Comprehensive",
            miscue=str(values.get("enableMiscue", False)).lower() == "true",
            prosody=str(values.get("enableProsodyAssessment", False)).lower() == "true",
            spoken_phonemes=spoken_phonemes,
        )

    @classmethod
    def of_header(cls, header: str) -> "AssessmentOptions":
        """Parse the header `Pronunciation-Assessment`. Raise `ValueError` if it is invalid."""
        parameters = loads(b64decode(header, validate=True))
        if not isinstance(parameters, dict):
            raise ValueError("Pronunciation-Assessment")  # noqa: TRY004 - the value of a header is invalid
        return cls.of(parameters)


def grade(words: Sequence[Timed], options: AssessmentOptions, *, interactive: bool) -> dict[str, Any]:
    """Return the scores and words of a phrase in the format of the sockets.

    Miscues are marked only in interactive mode.
    """
    graded_words = _grade_words(words, options, mark_miscues=interactive and options.miscue)
    counted = [word for word in graded_words if word.error != "Insertion"]
    correct = sum(word.error == "None" for word in graded_words)
    accuracy = sum(word.score for word in counted) / max(1, len(counted))
    scores: dict[str, float] = {"AccuracyScore": accuracy}
    if options.comprehensive:
        scores["FluencyScore"] = 95.0
        scores["CompletenessScore"] = min(100.0, 100 * correct / max(1, len(options.reference.split())))
        if options.prosody:
            scores["ProsodyScore"] = 85.0
        scores["PronScore"] = _overall(list(scores.values()))
    result: dict[str, Any] = {
        "PronunciationAssessment": {name: round(score / options.divisor, 1) for name, score in scores.items()}
    }
    if options.granularity != "FullText":
        result["Words"] = [word.as_json(options) for word in graded_words]
    return result


def flatten(best: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a result to the format of the HTTP endpoint, in which scores are not a separate object."""
    result: dict[str, Any] = {}
    for name, value in best.items():
        if name == "PronunciationAssessment":
            result |= value
        elif isinstance(value, list):
            result[name] = [flatten(item) for item in value]
        else:
            result[name] = value
    return result


@dataclass(frozen=True, slots=True)
class _GradedWord:
    text: str
    score: float
    error: str
    begin_ms: int = 0
    end_ms: int = 0

    def as_json(self, options: AssessmentOptions) -> dict[str, Any]:
        assessment: dict[str, Any] = {"AccuracyScore": round(self.score / options.divisor, 1)}
        if options.comprehensive:
            assessment["ErrorType"] = self.error
        if options.prosody and self.end_ms:
            assessment["Feedback"] = {"Prosody": {"Break": {"ErrorTypes": ["None"], "BreakLength": 0}}}
        word: dict[str, Any] = {
            "Word": self.text,
            **_time(self.begin_ms, self.end_ms),
            "PronunciationAssessment": assessment,
        }
        if options.granularity == "Phoneme" and self.end_ms:
            score = {"AccuracyScore": assessment["AccuracyScore"]}
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
                    "PronunciationAssessment": score | self._heard(letter, score["AccuracyScore"], options),
                    **_time(self.begin_ms + round(at * step), self.begin_ms + round((at + 1) * step)),
                }
                for at, letter in enumerate(self.text)
            ]
        return word

    def _heard(self, letter: str, score: float, options: AssessmentOptions) -> dict[str, Any]:
        """Return the phonemes that were heard, the best-fitting one first: another one if the word was misread."""
        if not options.spoken_phonemes:
            return {}
        heard = [{"Phoneme": letter, "Score": score}]
        heard += [
            {"Phoneme": f"{letter}{number}", "Score": 50.0 / options.divisor}
            for number in range(1, options.spoken_phonemes)
        ]
        return {"NBestPhonemes": sorted(heard, key=lambda one: one["Score"], reverse=True)}


def _time(begin_ms: int, end_ms: int) -> dict[str, int]:
    return {"Offset": begin_ms * TICKS_PER_MS, "Duration": (end_ms - begin_ms) * TICKS_PER_MS}


def _grade_words(words: Sequence[Timed], options: AssessmentOptions, *, mark_miscues: bool) -> list[_GradedWord]:
    recognized = [lexical(word.text) for word in words]
    reference = [lexical(word) for word in options.reference.split()]
    graded_words: list[_GradedWord] = []
    matcher = SequenceMatcher(None, reference, recognized, autojunk=False)
    for tag, begin, end, recognized_begin, recognized_end in matcher.get_opcodes():
        for at in range(recognized_begin, recognized_end):
            score = float(70 + crc32(recognized[at].encode()) % 31) if tag == "equal" or not reference else 40.0
            error = "None" if score >= _LOWEST_CORRECT else "Insertion" if mark_miscues else "Mispronunciation"
            graded_words.append(_GradedWord(recognized[at], score, error, words[at].begin_ms, words[at].end_ms))
        if mark_miscues and tag in {"delete", "replace"}:
            graded_words += [_GradedWord(word, 0.0, "Omission") for word in reference[begin:end]]
    return graded_words


def lexical(word: str) -> str:
    return word.strip(".,;:!?\"'()").lower()


def _overall(scores: Sequence[float]) -> float:
    lowest, *others = sorted(scores)
    return (0.4 if len(scores) == 4 else 0.6) * lowest + 0.2 * sum(others)
