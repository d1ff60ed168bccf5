"""What is spoken of answers in Markdown: answers with what is read of them, and random ones."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.spoken.sentences import SpokenSentence, SpokenSentences, merged
from tests.streams.pieces import split
from tests.streams.spoken.answers_read import ANSWERS, spoken, text_and_language

TOKENS = [
    *("Hello", "world.", "Dr.", "e.g.", "1986.", "3.50", "https://a.b/c?x=1", "你好。", "次", "😀", "✅", "é"),
    *("```", "```py", "~~~", "`", "**", "*", "_", "~~", "# ", "- ", "* ", "• ", "1. ", "2) ", "> ", "| ", " | "),
    *(
        "---",
        "|---|",
        "===",
        "[x](http://a.b)",
        "[1]: ",
        "[Ann]: ",
        "![",
        "](",
        "<br>",
        "<!--",
        "-->",
        "&amp;",
        "\\*",
        "[ ] ",
    ),
    *("$x^2$", "$", "$$", "\\(", "\\)", "\\frac{1}{2}", "1️⃣ ", "🔟", "~5", "❌", "- ```", "\\|", "  \n", "\\\n"),
    *(".NET", "M. ", "[1]", "`*`", "<sup>2</sup>", "★☆", "## ", "**a:** ", "A♠", "♯"),
    *(
        "1.1. ",
        "1.2 ",
        "II. ",
        "a) ",
        "(b",
        "(1)",
        "A.1. ",
        "1-1. ",
        "#1. ",
        "1a. ",
        "가.",
        "나. ",
        "十一、",
        "```Then. ",
        "2**3",
        "<script>",
        "</script>",
        "__",
    ),
    *(" ", "    ", "\t", "\n", "\n\n", "\r\n", "a", "1", ".", "!"),
]
MARKDOWN = st.lists(st.sampled_from(TOKENS), max_size=30).map("".join)
CUTS = st.lists(st.integers(0, max(len(answer.read_text()) for answer in ANSWERS)), max_size=40)
SPLITS = st.lists(st.integers(0, 120), max_size=8)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda path: path.stem)
def test_answers_are_spoken_as_people_would_read_them(answer: Path):
    text, language = text_and_language(answer)
    read = answer.with_suffix(".txt").read_text().splitlines()

    assert spoken([text], language) == read
    assert spoken(text, language) == read
    assert spoken([text[at : at + 7] for at in range(0, len(text), 7)], language) == read


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(ANSWERS), CUTS)
def test_the_same_is_spoken_of_an_answer_however_it_is_cut(answer: Path, at: list[int]):
    text, language = text_and_language(answer)

    assert spoken(split(text, at), language) == spoken([text], language)


@pytest.mark.soak
@settings(max_examples=50_000, deadline=None)
@given(st.sampled_from(ANSWERS), CUTS)
def test_the_same_is_spoken_of_an_answer_in_very_many_cuts(answer: Path, at: list[int]):
    text, language = text_and_language(answer)

    assert spoken(split(text, at), language) == spoken([text], language)


@pytest.mark.soak
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda path: path.stem)
def test_the_same_is_spoken_of_an_answer_cut_at_any_place(answer: Path):
    text, language = text_and_language(answer)
    read = spoken([text], language)

    assert all(spoken(split(text, [at]), language) == read for at in range(len(text)))


def sentences(deltas: list[str]) -> list[SpokenSentence]:
    splitter = SpokenSentences("en")
    return [sentence for delta in deltas for sentence in splitter.feed(delta)] + splitter.finish()


def check(text: str, at: list[int]) -> None:
    whole = sentences([text])
    assert "".join(sentence.written for sentence in whole) == text
    assert sentences(split(text, at)) == sentences(list(text)) == whole
    assert all(sentence.written for sentence in whole)
    for sentence in whole:
        assert sentence.text == sentence.text.strip()
        assert sentence.text == "" or any(character.isalnum() for character in sentence.text)


@given(MARKDOWN | st.text(max_size=40), SPLITS)
def test_every_split_gives_the_same_sentences_without_loss(text: str, at: list[int]):
    check(text, at)


@pytest.mark.soak
@settings(max_examples=200_000, deadline=None)
@given(MARKDOWN | st.text(max_size=60), SPLITS)
def test_every_split_of_very_many_answers_gives_the_same_sentences(text: str, at: list[int]):
    check(text, at)


@given(st.lists(st.sampled_from(["x = 1.\n", "\n", "# a\n", "- b\n", "    c\n", "~~~\n", "`` \n"]), max_size=12))
def test_no_line_of_code_is_spoken_and_the_prose_after_it_is(lines: list[str]):
    answer = "Before.\n\n```py\n" + "".join(lines) + "```\nAfter."

    assert spoken([answer], "en") == ["Before.", "After."]


@pytest.mark.parametrize(
    "markup",
    ["", " \n", "***", "---", "_ _", "...", "**?!**", "😀", "| - |", "#", "-", ">", "```", "[1]: http://a.b"],
)
def test_markup_alone_is_not_spoken(markup: str):
    assert spoken([markup], "en") == []


@pytest.mark.parametrize("answer", ["42.", "1.", "-5", "2. ", "Anna: Hello", "#1"])
def test_text_that_looks_like_markup_is_spoken(answer: str):
    assert spoken([answer], "en") == spoken(answer, "en") == [answer.strip()]


def test_sentences_are_joined_up_to_a_limit():
    parts = sentences(["# Title\n\n- One\n- Two words here. 你好。再见。"])

    assert merged(parts, 0) == (SpokenSentence("# ", ""), 1)
    assert merged(parts[1:], 0)[0].text == "Title."
    whole, count = merged(parts, 1000)
    assert (count, whole.text) == (len(parts), "Title. One. Two words here. 你好。再见。")
    limited, _ = merged(parts, 12)
    assert limited.text == "Title. One."
