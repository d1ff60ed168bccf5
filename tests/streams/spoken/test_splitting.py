"""Text is split into sentences without loss, whatever the deltas."""

from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.spoken.splitting import Sentences
from tests.streams.pieces import split

TOKENS = [
    *("Hello", "world", "Dr", "e.g", "U.S", "B", "3.50", "http://a.b/c.html?x=1.2", "No", "i"),
    *(".", "!", "?", "...", "?!", ",", ";", '"', "'", "“", "”", "(", ")", "*", "-", ":"),
    *(" ", "  ", "\n", "\n\n", "\t", "\u00a0", "\u2028", "\u3000", "\r\n"),
    *(
        "你好",
        "。",
        "！",  # noqa: RUF001 - its own stops
        "？",  # noqa: RUF001 - its own stops
        "「",
        "」",
        "はい",
        "नमस्ते",
        "।",
        "مرحبا",
        "؟",
        "é",
        "😀",
        "👨‍👩‍👧",
        "\u200d",
        "\u0301",
    ),
]
TEXTS = st.lists(st.sampled_from(TOKENS), max_size=40).map("".join) | st.text(max_size=40)
LANGUAGES = st.sampled_from(["en", "en-US", "zh-CN", "ja", "de", "fr", "ru", "hi", "ar", "xx", "", "-"])


def sentences(deltas: Iterable[str], language: str = "en") -> list[str]:
    splitter = Sentences(language)
    return [sentence for delta in deltas for sentence in splitter.feed(delta)] + splitter.finish()


@given(TEXTS, LANGUAGES, st.lists(st.integers(0, 120), max_size=10))
@example('He said "Hi. There is." ok. Next one here.', "en", [22])
@example("Plan B\u00a0. Then", "en", [])
@example("「你好。」他说！真的吗？是", "zh", [5, 6])  # noqa: RUF001 - its own stops
def test_every_split_gives_the_same_sentences_without_loss(text: str, language: str, at: list[int]):
    whole = sentences([text], language)

    assert "".join(whole) == text
    assert all(whole)
    assert sentences(text, language) == whole
    assert sentences(split(text, at), language) == whole


@given(
    st.lists(st.sampled_from(["a" * 400, "word " * 90, ". Next ", "。", " ", "\n", "é" * 333]), max_size=9).map(
        "".join
    ),
    st.lists(st.integers(0, 3000), max_size=6),
)
@example("a" * 3001, [1000])
@example("a" * 1000 + ". Next one ", [])
@example("word " * 700, [1])
def test_text_without_a_sentence_end_is_split_at_any_delta(text: str, at: list[int]):
    whole = sentences([text])

    assert "".join(whole) == text
    assert max(map(len, whole), default=0) <= 1000
    assert sentences(split(text, at)) == sentences(text) == whole


def test_text_without_a_sentence_end_is_split_at_a_space():
    text = "word " * 250

    assert [len(sentence) for sentence in sentences([text])] == [1000, 250]
    assert [len(sentence) for sentence in sentences(["a" * 2500])] == [1000, 1000, 500]


@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. Smith paid $3.50 at 5 p.m. on Jan. 5. ", "It was, e.g. in the U.S. army, fine. ", "Bye."],
        ["See https://a.b/c.html?x=1. ", "Or a.b.c for more! ", "Done"],
        ["What?! ", "No... ", "Yes."],
        ['He said "Hi." ', "Then he left. ", "So."],
        ["Hi 👋🏽! ", "Here is a family 👨‍👩‍👧. ", "End."],
        ["One. ", "J. R. R. Tolkien wrote it. ", "Two."],
        ["   Leading. ", "Trailing.   "],
        ["No end here"],
        [],
    ],
)
def test_english_sentences_are_split_at_their_ends(expected: list[str]):
    assert sentences("".join(expected)) == expected


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("zh-CN", ["你好。", "我很好！", "真的吗？", "是"]),  # noqa: RUF001 - its own stops
        ("ja", ["「はい。」", "と言った。", "次"]),
        ("hi", ["नमस्ते। ", "कैसे हो? ", "ठीक।"]),
        ("ar", ["مرحبا. ", "كيف حالك؟ ", "أنا بخير."]),
        ("de", ["Das ist z. B. gut. ", "Ja!"]),
    ],
)
def test_sentence_ends_of_other_languages_are_recognized(language: str, expected: list[str]):
    assert sentences("".join(expected), language) == expected


def test_a_sentence_is_released_once_a_complete_word_follows():
    splitter = Sentences("en")

    assert splitter.feed("Hello there. And") == []
    assert splitter.feed("rew") == []
    assert splitter.feed(" is ") == ["Hello there. "]
    assert splitter.feed("here. 3.") == []
    assert splitter.finish() == ["Andrew is here. ", "3."]


def test_a_sentence_without_spaces_is_released_at_the_next_character():
    splitter = Sentences("zh")

    assert splitter.feed("你好。") == []
    assert splitter.feed("我") == ["你好。"]
    assert splitter.feed("说「好。」") == []
    assert splitter.feed("他") == ["我说「好。」"]
    assert splitter.finish() == ["他"]


def test_the_next_paragraph_begins_at_zero():
    splitter = Sentences("en")
    splitter.feed("One. Two")
    splitter.finish()

    assert splitter.finish() == []
    assert splitter.feed("Three. Four is ") == ["Three. "]
    assert splitter.finish() == ["Four is "]


@pytest.mark.parametrize("language", ["en", "de", "fr", "ru", "zh", "xx"])
@pytest.mark.parametrize("space", ["\u0085", "\u00a0", "\u2003", "\u2028", "\u202f", "\u3000"])
def test_spaces_before_a_sentence_end_are_accepted(language: str, space: str):
    text = f"Plan B{space}. Then{space}C{space}. end"

    assert "".join(sentences([text], language)) == text
