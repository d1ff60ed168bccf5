"""Phrases of an assessment are merged into one result with omissions and insertions."""
# ruff: noqa: RUF001 - these are characters of other scripts

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vendors.protocols import AssessmentRequest
from vendors.speech.azure.merging import merge_phrases, overall
from vendors.speech.azure.miscues import Omitted, RecognizedWord, compare

WORDS = st.lists(st.sampled_from(["one", "two", "three", "four"]), max_size=12)
SECOND = 10_000_000


def marks(reference: str, heard: str, gap: str = " ") -> str:
    """Return the words, with `-` before omissions and `+` before insertions."""
    words = heard.split()
    return " ".join(
        f"-{mark.word}" if isinstance(mark, Omitted) else f"{'+' if mark.inserted else ''}{words[mark.position]}"
        for mark in compare(reference, words, gap=gap)
    )


@pytest.mark.parametrize(
    ("reference", "heard", "marked"),
    [
        ("Good morning, dear friend!", "good morning dear friend", "good morning dear friend"),
        ("Good morning, dear friend!", "good dear friend", "good -morning dear friend"),
        ("Good morning.", "good uh morning", "good +uh morning"),
        ("Good morning.", "good evening", "good +evening -morning"),
        ("Good morning.", "", "-good -morning"),
        ("“Don’t”, he said - twice", "don't he said twice", "don't he said twice"),
        ("a well-known man", "a well known man", "a well known man"),
        ("a well known man", "a well-known man", "a well-known man"),
        ("İstanbul'da Straße", "i̇stanbul'da straße", "i̇stanbul'da straße"),
        ("one two three", "three", "-one -two three"),
        ("", "one", "+one"),
    ],
)
def test_spoken_omitted_and_inserted_words_are_distinguished(reference: str, heard: str, marked: str):
    assert marks(reference, heard) == marked


@pytest.mark.parametrize(
    ("reference", "heard", "marked"),
    [
        ("你好，世界。", "你好 世界", "你好 世界"),
        ("你好，世界。", "你 好世界", "你 好世界"),
        ("我今天去学校", "我 去 学校", "我 -今天 去 学校"),
        ("去学校", "去 了 学校", "去 +了 学校"),
        ("学校", "学生", "学生 -校"),
    ],
)
def test_scripts_without_gaps_are_compared_by_letters(reference: str, heard: str, marked: str):
    assert marks(reference, heard, gap="") == marked


@given(WORDS, WORDS)
def test_every_word_has_a_grade(reference: list[str], heard: list[str]):
    result = compare(" ".join(reference), heard, gap=" ")

    assert [mark.position for mark in result if isinstance(mark, RecognizedWord)] == list(range(len(heard)))
    said = [mark.word if isinstance(mark, Omitted) else heard[mark.position] for mark in result]
    fitting = [
        word for word, mark in zip(said, result, strict=True) if isinstance(mark, Omitted) or not mark.inserted
    ]
    assert fitting == reference


def word(text: str, begin: int, seconds: int = 1, *, accuracy: float = 90, error: str = "None") -> dict[str, Any]:
    return {
        "Word": text,
        "Offset": begin * SECOND,
        "Duration": seconds * SECOND,
        "PronunciationAssessment": {"AccuracyScore": accuracy, "ErrorType": error},
        "Phonemes": [{"Phoneme": "x", "PronunciationAssessment": {"AccuracyScore": accuracy}}],
    }


def phrase(begin: int, *words: dict[str, Any], prosody: float | None = None, **scores: float) -> dict[str, Any]:
    """Return the vendor's phrase for consecutive words."""
    given = {"AccuracyScore": 91.0, "FluencyScore": 92.0, "CompletenessScore": 93.0, "PronScore": 94.0, **scores}
    text = " ".join(said["Word"] for said in words)
    best = {
        "Confidence": 0.9,
        "Lexical": text,
        "ITN": text,
        "MaskedITN": text,
        "Display": text.capitalize() + ".",
        "PronunciationAssessment": given | ({} if prosody is None else {"ProsodyScore": prosody}),
        "Words": list(words),
    }
    return {
        "Id": f"id{begin}",
        "RecognitionStatus": "Success",
        "Offset": begin * SECOND,
        "Duration": sum(said["Duration"] for said in words),
        "DisplayText": best["Display"],
        "NBest": [best],
    }


def ask(reference: str, **fields: Any) -> AssessmentRequest:
    return AssessmentRequest(reference, **fields)


def errors(result: dict[str, Any]) -> list[tuple[str, str]]:
    words = result["NBest"][0]["Words"]
    return [(said["Word"], said["PronunciationAssessment"]["ErrorType"]) for said in words]


@pytest.mark.parametrize("enable_miscue", [False, True])
def test_a_single_phrase_without_miscues_is_unchanged(enable_miscue: bool):
    only = phrase(1, word("good", 1), word("morning", 2, accuracy=40, error="Mispronunciation"))

    assert merge_phrases([only], ask("Good morning!", enable_miscue=enable_miscue)) is only


def test_phrases_are_merged_with_overall_scores():
    first = phrase(
        1, word("good", 1, accuracy=100), word("morning", 2, accuracy=40, error="Mispronunciation"), prosody=70
    )
    second = phrase(6, word("dear", 6, accuracy=80), word("friend", 7, accuracy=60), prosody=90)

    result = merge_phrases([first, second], ask("Good morning dear friend", enable_prosody_assessment=True))

    assert (result["Id"], result["Offset"], result["Duration"]) == ("id1", SECOND, 7 * SECOND)
    assert (result["RecognitionStatus"], result["DisplayText"]) == ("Success", "Good morning. Dear friend.")
    (best,) = result["NBest"]
    assert (best["Lexical"], best["Display"]) == ("good morning dear friend", "Good morning. Dear friend.")
    assert best["Words"] == first["NBest"][0]["Words"] + second["NBest"][0]["Words"]
    assert best["PronunciationAssessment"] == {
        "AccuracyScore": 70.0,  # Of all four words.
        "FluencyScore": 42.9,  # 3 of 7 seconds are words without an error.
        "CompletenessScore": 75.0,  # 3 of 4 words.
        "ProsodyScore": 80.0,
        "PronScore": 62.1,  # 0.4 of 42.9 and 0.2 of (70 + 75 + 80)
    }


def test_miscues_are_found_in_the_whole_reference():
    first = phrase(0, word("good", 0), word("uh", 1), word("morning", 2))
    second = phrase(4, word("friend", 4))

    result = merge_phrases([first, second], ask("Good morning my dear friend", enable_miscue=True))

    assert errors(result) == [
        ("good", "None"), ("uh", "Insertion"), ("morning", "None"),
        ("my", "Omission"), ("dear", "Omission"), ("friend", "None"),
    ]  # fmt: skip
    left_out = result["NBest"][0]["Words"][3]
    assert left_out == {
        "Word": "my",
        "Offset": 0,
        "Duration": 0,
        "PronunciationAssessment": {"AccuracyScore": 0.0, "ErrorType": "Omission"},
        "Syllables": [],
        "Phonemes": [],
    }
    scores = result["NBest"][0]["PronunciationAssessment"]
    assert scores["AccuracyScore"] == 54.0  # Three scores of 90 and two of 0. Insertions do not count.
    assert scores["CompletenessScore"] == 60.0


def test_miscues_are_marked_only_on_request():
    result = merge_phrases(
        [phrase(0, word("good", 0), word("uh", 1)), phrase(3, word("day", 3))], ask("good morning")
    )

    assert errors(result) == [("good", "None"), ("uh", "None"), ("day", "None")]


def test_miscues_are_recomputed_for_the_whole_reference():
    first = phrase(0, word("good", 0), word("morning", 0, 0, accuracy=0, error="Omission"))
    second = phrase(
        3,
        word("morning", 3, accuracy=90, error="Insertion"),
        word("friend", 4, accuracy=30, error="Insertion"),
    )

    result = merge_phrases([first, second], ask("Good morning friend", enable_miscue=True))

    assert errors(result) == [("good", "None"), ("morning", "None"), ("friend", "Mispronunciation")]


def test_single_phrase_with_an_omission_keeps_the_vendors_fluency():
    only = phrase(0, word("good", 0), prosody=50.0)

    result = merge_phrases([only], ask("good morning", enable_miscue=True, granularity="Word"))

    assert errors(result) == [("good", "None"), ("morning", "Omission")]
    assert "Phonemes" not in result["NBest"][0]["Words"][1]
    assert result["NBest"][0]["PronunciationAssessment"] == {
        "AccuracyScore": 45.0,
        "FluencyScore": 92.0,
        "CompletenessScore": 50.0,
        "ProsodyScore": 50.0,
        "PronScore": 56.4,
    }
    assert only["NBest"][0]["Words"] == [word("good", 0)]  # The original is unchanged.


def test_five_point_scores_are_returned_unchanged():
    parts = [phrase(0, word("good", 0, accuracy=4)), phrase(1, word("morning", 1, accuracy=5))]

    scores = merge_phrases(parts, ask("good morning", grading_system="FivePoint"))["NBest"][0][
        "PronunciationAssessment"
    ]

    assert scores == {"AccuracyScore": 4.5, "FluencyScore": 5.0, "CompletenessScore": 5.0, "PronScore": 4.7}


def test_without_words_phrase_scores_are_weighted_by_length():
    parts = [phrase(0, word("good", 0, 3), AccuracyScore=100), phrase(3, word("day", 3, 1), AccuracyScore=60)]
    for part in parts:
        del part["NBest"][0]["Words"]

    result = merge_phrases(parts, ask("good day", granularity="FullText", enable_miscue=True))

    assert "Words" not in result["NBest"][0]
    assert result["NBest"][0]["PronunciationAssessment"]["AccuracyScore"] == 90.0


def test_languages_without_gaps_are_joined_without_them():
    parts = [phrase(0, word("你好", 0)), phrase(2, word("世界", 2))]

    result = merge_phrases(parts, ask("你好，世界。", language="zh-CN", enable_miscue=True))

    assert result["NBest"][0]["Lexical"] == "你好世界"
    assert result["NBest"][0]["PronunciationAssessment"]["CompletenessScore"] == 100.0


def test_lowest_score_weighs_most():
    assert overall([100, 50, 80, 90]) == pytest.approx(0.4 * 50 + 0.2 * (80 + 90 + 100))
    assert overall([100, 50, 80]) == pytest.approx(0.6 * 50 + 0.2 * (80 + 100))
    assert overall([100, 50]) == pytest.approx(0.6 * 50 + 0.4 * 100)
