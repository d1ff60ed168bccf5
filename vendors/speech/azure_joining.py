"""One result of an assessment that came in phrases: words joined, miscues marked, scores of the whole. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from vendors.protocols import AssessmentRequest
from vendors.speech.azure_frames import ticks_of
from vendors.speech.azure_languages import word_gap
from vendors.speech.azure_miscues import Omitted, RecognizedWord, compare, units

Fields = dict[str, Any]

_FULL_MARKS = {"FivePoint": 5.0, "HundredMark": 100.0}
_MISPRONOUNCED_BELOW = 0.6
_TEXTS = ("Lexical", "ITN", "MaskedITN", "Display")


def joined(phrases: Sequence[Fields], request: AssessmentRequest) -> Fields:
    """The phrases that were understood, at least one, as if the vendor had heard them as one.

    What the vendor made in one piece stays as it is, unless miscues are asked for and there are some: those it
    does not tell in this mode. Wrong forms raise `KeyError`, `TypeError`, `ValueError` or `AttributeError`.
    """
    gap = word_gap(request.language)
    bests: list[Fields] = [phrase["NBest"][0] for phrase in phrases]
    if not all("PronunciationAssessment" in best for best in bests):
        raise KeyError("PronunciationAssessment")
    words = [word for best in bests for word in best.get("Words") or ()]
    graded = all("AccuracyScore" in word.get("PronunciationAssessment", {}) for word in words)
    marked = _marked(words, request, gap) if words and graded and request.enable_miscue else words
    if len(phrases) == 1 and all(_error(word) not in {"Omission", "Insertion"} for word in marked):
        return phrases[0]
    begin = ticks_of(phrases[0], "Offset")
    end = ticks_of(phrases[-1], "Offset") + ticks_of(phrases[-1], "Duration")
    if words and graded:
        scores = _scores(marked, bests, request, gap, duration=end - begin)
    else:
        scores = _mean_scores(phrases, bests)
    best: Fields = {
        **bests[0],
        **{name: gap.join(str(best.get(name) or "") for best in bests) for name in _TEXTS if name in bests[0]},
        "PronunciationAssessment": scores,
    }
    if "Confidence" in bests[0]:
        best["Confidence"] = round(_mean([float(best["Confidence"]) for best in bests]), 6)
    if words:
        best["Words"] = marked
    text = gap.join(str(phrase.get("DisplayText") or "") for phrase in phrases)
    return {**phrases[0], "Offset": begin, "Duration": end - begin, "DisplayText": text, "NBest": [best]}


def _marked(words: Sequence[Fields], request: AssessmentRequest, gap: str) -> list[Fields]:
    """The words with `Omission` and `Insertion` anew, over the whole reference."""
    heard = [word for word in words if _error(word) != "Omission"]
    full = _FULL_MARKS[request.grading_system]
    marked: list[Fields] = []
    for mark in compare(request.reference_text, [str(word["Word"]) for word in heard], gap=gap):
        match mark:
            case Omitted(word):
                marked.append(_omission(word, request))
            case RecognizedWord(position, inserted):
                marked.append(_remarked(heard[position], full, inserted=inserted))
    return marked


def _omission(word: str, request: AssessmentRequest) -> Fields:
    parts: Fields = {"Syllables": [], "Phonemes": []} if request.granularity == "Phoneme" else {}
    score = {"AccuracyScore": 0.0, "ErrorType": "Omission"}
    return {"Word": word, "Offset": 0, "Duration": 0, "PronunciationAssessment": score, **parts}


def _remarked(word: Fields, full: float, *, inserted: bool) -> Fields:
    """The word as an insertion, or as none."""
    error = _error(word)
    if inserted:
        error = "Insertion"
    elif error == "Insertion":
        error = "Mispronunciation" if _accuracy(word) < full * _MISPRONOUNCED_BELOW else "None"
    if error == _error(word):
        return word
    return {**word, "PronunciationAssessment": {**word["PronunciationAssessment"], "ErrorType": error}}


def _scores(
    words: Sequence[Fields], bests: Sequence[Fields], request: AssessmentRequest, gap: str, *, duration: int
) -> Fields:
    """Scores of the whole, computed as the vendor advises for speech that it heard in phrases."""
    full = _FULL_MARKS[request.grading_system]
    sound = [word for word in words if _error(word) == "None"]
    accuracies = [_accuracy(word) for word in words if _error(word) != "Insertion"]
    fluencies = _each(bests, "FluencyScore")
    if len(bests) > 1 or not fluencies:  # pauses between phrases are heard by nobody but us
        spoken = sum(ticks_of(word, "Duration") for word in sound)
        fluencies = [min(full, spoken / duration * full) if duration > 0 else 0.0]
    scores: Fields = {"AccuracyScore": _mean(accuracies), "FluencyScore": fluencies[0]}
    if wanted := len(units(request.reference_text, gap=gap)):
        fitting = sum(len(units(str(word["Word"]), gap=gap)) for word in sound)
        scores["CompletenessScore"] = min(full, fitting / wanted * full)
    prosodies = _each(bests, "ProsodyScore")
    if prosodies:
        scores["ProsodyScore"] = _mean(prosodies)
    scores["PronScore"] = overall(list(scores.values()))
    return {name: round(score, 1) for name, score in scores.items()}


def overall(scores: Sequence[float]) -> float:
    """The vendor's `PronScore`: the lowest score weighs most."""
    weights = {1: (1.0,), 2: (0.6, 0.4), 3: (0.6, 0.2, 0.2), 4: (0.4, 0.2, 0.2, 0.2)}[len(scores)]
    return sum(weight * score for weight, score in zip(weights, sorted(scores), strict=True))


def _mean_scores(phrases: Sequence[Fields], bests: Sequence[Fields]) -> Fields:
    """Without scores of words: those of the phrases, a long one weighing more."""
    weights = [max(1, ticks_of(phrase, "Duration")) for phrase in phrases]
    names = bests[0].get("PronunciationAssessment", {})
    return {
        name: round(sum(w * s for w, s in zip(weights, scores, strict=True)) / sum(weights), 1)
        for name in names
        if len(scores := _each(bests, name)) == len(bests)
    }


def _each(bests: Sequence[Fields], name: str) -> list[float]:
    given = (best.get("PronunciationAssessment", {}).get(name) for best in bests)
    return [float(score) for score in given if score is not None]


def _error(word: Mapping[str, Any]) -> str:
    return str(word.get("PronunciationAssessment", {}).get("ErrorType") or "None")


def _accuracy(word: Fields) -> float:
    return float(word["PronunciationAssessment"]["AccuracyScore"])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
