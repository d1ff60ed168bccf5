"""Merges the phrases of an assessment into one result: words, miscues and overall scores. Does no I/O."""

from collections.abc import Mapping, Sequence
from typing import Any

from vendors.json_events import number_of, object_of, objects_of, text_of
from vendors.protocols import AssessmentRequest
from vendors.speech.azure.frames import ticks_of
from vendors.speech.azure.languages import word_gap
from vendors.speech.azure.miscues import Omitted, RecognizedWord, compare, units

Fields = Mapping[str, Any]

_FULL_MARKS = {"FivePoint": 5.0, "HundredMark": 100.0}
_MISPRONOUNCED_BELOW = 0.6
_TEXTS = ("Lexical", "ITN", "MaskedITN", "Display")


def merge_phrases(phrases: Sequence[Fields], request: AssessmentRequest) -> Fields:
    """Merge recognized phrases, at least one, as if the vendor had returned them as one.

    A single phrase is returned unchanged, unless miscues are requested and found: the vendor does not report
    omissions and insertions in this mode. A phrase without an assessment raises `ValueError`.
    """
    gap = word_gap(request.language)
    bests = [next(iter(objects_of(phrase.get("NBest"))), {}) for phrase in phrases]
    if not all(map(_assessment, bests)):
        raise ValueError("a phrase has no assessment")
    words = [word for best in bests for word in objects_of(best.get("Words")) if text_of(word.get("Word"))]
    graded = all(_score(word, "AccuracyScore") is not None for word in words)
    marked = _mark_miscues(words, request, gap) if words and graded and request.enable_miscue else words
    if len(phrases) == 1 and all(_error(word) not in {"Omission", "Insertion"} for word in marked):
        return phrases[0]
    begin = ticks_of(phrases[0], "Offset")
    end = ticks_of(phrases[-1], "Offset") + ticks_of(phrases[-1], "Duration")
    if words and graded:
        scores = _scores(marked, bests, request, gap, duration=end - begin)
    else:
        scores = _mean_scores(phrases, bests)
    best: dict[str, Any] = {
        **bests[0],
        **{name: gap.join(text_of(best.get(name)) for best in bests) for name in _TEXTS if name in bests[0]},
        "PronunciationAssessment": scores,
    }
    if confidences := [number for best in bests if (number := number_of(best.get("Confidence"))) is not None]:
        best["Confidence"] = round(_mean(confidences), 6)
    if words:
        best["Words"] = marked
    text = gap.join(text_of(phrase.get("DisplayText")) for phrase in phrases)
    return {**phrases[0], "Offset": begin, "Duration": end - begin, "DisplayText": text, "NBest": [best]}


def _mark_miscues(words: Sequence[Fields], request: AssessmentRequest, gap: str) -> list[Fields]:
    """Mark omissions and insertions again, compared with the complete reference text."""
    spoken = [word for word in words if _error(word) != "Omission"]
    full = _FULL_MARKS[request.grading_system]
    marked: list[Fields] = []
    for mark in compare(request.reference_text, [text_of(word["Word"]) for word in spoken], gap=gap):
        match mark:
            case Omitted(word):
                marked.append(_omission(word, request))
            case RecognizedWord(position, inserted):
                marked.append(_with_insertion(spoken[position], full, inserted=inserted))
    return marked


def _omission(word: str, request: AssessmentRequest) -> Fields:
    parts: Fields = {"Syllables": [], "Phonemes": []} if request.granularity == "Phoneme" else {}
    score = {"AccuracyScore": 0.0, "ErrorType": "Omission"}
    return {"Word": word, "Offset": 0, "Duration": 0, "PronunciationAssessment": score, **parts}


def _with_insertion(word: Fields, full: float, *, inserted: bool) -> Fields:
    """Return the word with its error type set or cleared as an insertion."""
    error = _error(word)
    if inserted:
        error = "Insertion"
    elif error == "Insertion":
        error = "Mispronunciation" if _accuracy(word) < full * _MISPRONOUNCED_BELOW else "None"
    if error == _error(word):
        return word
    return {**word, "PronunciationAssessment": {**_assessment(word), "ErrorType": error}}


def _scores(
    words: Sequence[Fields], bests: Sequence[Fields], request: AssessmentRequest, gap: str, *, duration: int
) -> Fields:
    """Compute the overall scores as the vendor's documentation advises for speech in several phrases."""
    full = _FULL_MARKS[request.grading_system]
    correct_words = [word for word in words if _error(word) == "None"]
    accuracies = [_accuracy(word) for word in words if _error(word) != "Insertion"]
    fluencies = _values(bests, "FluencyScore")
    if len(bests) > 1 or not fluencies:  # The vendor's scores do not include the pauses between phrases.
        spoken = sum(ticks_of(word, "Duration") for word in correct_words)
        fluencies = [min(full, spoken / duration * full) if duration > 0 else 0.0]
    scores: dict[str, float] = {"AccuracyScore": _mean(accuracies), "FluencyScore": fluencies[0]}
    if reference_count := len(units(request.reference_text, gap=gap)):
        correct_count = sum(len(units(text_of(word["Word"]), gap=gap)) for word in correct_words)
        scores["CompletenessScore"] = min(full, correct_count / reference_count * full)
    prosodies = _values(bests, "ProsodyScore")
    if prosodies:
        scores["ProsodyScore"] = _mean(prosodies)
    scores["PronScore"] = overall(list(scores.values()))
    return {name: round(score, 1) for name, score in scores.items()}


def overall(scores: Sequence[float]) -> float:
    """Return the vendor's `PronScore`, in which the lowest score has the largest weight."""
    weights = {1: (1.0,), 2: (0.6, 0.4), 3: (0.6, 0.2, 0.2), 4: (0.4, 0.2, 0.2, 0.2)}[len(scores)]
    return sum(weight * score for weight, score in zip(weights, sorted(scores), strict=True))


def _mean_scores(phrases: Sequence[Fields], bests: Sequence[Fields]) -> Fields:
    """Return the mean scores of the phrases, weighted by duration, for phrases without word scores."""
    weights = [max(1, ticks_of(phrase, "Duration")) for phrase in phrases]
    return {
        name: round(sum(w * s for w, s in zip(weights, scores, strict=True)) / sum(weights), 1)
        for name in _assessment(bests[0])
        if len(scores := _values(bests, name)) == len(bests)
    }


def _values(bests: Sequence[Fields], name: str) -> list[float]:
    return [score for best in bests if (score := _score(best, name)) is not None]


def _assessment(part: Fields) -> Fields:
    return object_of(part.get("PronunciationAssessment"))


def _score(part: Fields, name: str) -> float | None:
    return number_of(_assessment(part).get(name))


def _error(word: Fields) -> str:
    return text_of(_assessment(word).get("ErrorType")) or "None"


def _accuracy(word: Fields) -> float:
    return _score(word, "AccuracyScore") or 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
