"""A reply is split at its delimiter, whatever the deltas. Only delimiters and blank paragraphs are dropped."""

from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.events import AssistantOutputChunk as Piece
from streams.events import AssistantOutputContentSegment as Whole
from streams.paragraphs import Paragraphs, Part
from tests.streams.pieces import split

DELIMITERS = ["\n\n", "\n", "---", "\n---\n", " | ", "##", "aba", "é😀", "  "]


def played(deltas: Iterable[str], delimiter: str) -> list[Part]:
    paragraphs = Paragraphs(delimiter)
    return [item for delta in deltas for item in paragraphs.feed(delta)] + paragraphs.finish()


def expected(text: str, delimiter: str) -> list[str]:
    """Return the paragraphs of a complete text, computed in another way.

    Parts between delimiters, without blank ones; white space that could have begun a delimiter ends with the text.
    """
    *whole, last = text.split(delimiter)
    begun = max(size for size in range(len(delimiter)) if last.endswith(delimiter[:size]))
    sure, unsure = last[: len(last) - begun], last[len(last) - begun :]
    return [part for part in (*whole, sure + unsure.rstrip()) if part.strip()]


@given(st.data(), st.sampled_from(DELIMITERS))
def test_every_split_gives_the_same_paragraphs(data: st.DataObject, delimiter: str):
    tokens = st.sampled_from([delimiter, delimiter[:-1], delimiter[0], " ", "\n", "x", "ab", "é"])
    text = "".join(data.draw(st.lists(tokens, max_size=14)))
    at = data.draw(st.lists(st.integers(0, len(text)), max_size=8))

    for deltas in ([text], list(text), split(text, at)):
        items = played(deltas, delimiter)
        closes = [item for item in items if isinstance(item, Whole)]

        assert [close.text for close in closes] == expected(text, delimiter)
        assert [close.index for close in closes] == list(range(len(closes)))


@given(st.data(), st.sampled_from(DELIMITERS))
@example(None, "---")
def test_pieces_of_a_paragraph_add_up_to_its_text_before_it_ends(data: st.DataObject | None, delimiter: str):
    if data is None:
        deltas = ["  --", "x", " ", "--", "- --"]
    else:
        tokens = st.sampled_from([delimiter, delimiter[:-1], delimiter[0], " ", "\n", "x", "y z", ""])
        deltas = data.draw(st.lists(tokens, max_size=14))
    paragraphs = Paragraphs(delimiter)
    said = ""
    closed = 0

    for delta in (*deltas, None):
        for item in paragraphs.finish() if delta is None else paragraphs.feed(delta):
            assert item.index == closed
            if isinstance(item, Piece):
                assert item.text
                said += item.text
            else:
                assert item.text == said
                said, closed = "", closed + 1
        assert (paragraphs.open_text, paragraphs.open_index) == (said, closed)

    assert said == ""


@pytest.mark.parametrize(
    ("text", "paragraphs"),
    [
        ("One.\n\nTwo.\n\n", ["One.", "Two."]),
        ("\n\n\n\nOne.\n\n \n\n\t\n\nTwo.", ["One.", "Two."]),
        ("One.\n\n\nTwo.", ["One.", "\nTwo."]),
        ("a\nb", ["a\nb"]),
        ("a \n", ["a "]),
        ("  a", ["  a"]),
        ("", []),
        (" \n\n ", []),
    ],
)
def test_blank_line_is_the_default_and_blank_paragraphs_get_no_index(text: str, paragraphs: list[str]):
    closes = [item for item in played(text, "\n\n") if isinstance(item, Whole)]

    assert closes == [Whole(index, paragraph) for index, paragraph in enumerate(paragraphs)]


def test_text_is_yielded_immediately_except_possible_delimiters():
    paragraphs = Paragraphs("\n\n")

    assert paragraphs.feed("\n a") == [Piece(0, "\n a")]
    assert paragraphs.feed("b\n") == [Piece(0, "b")]
    assert paragraphs.feed("c") == [Piece(0, "\nc")]
    assert paragraphs.feed("\n") == []
    assert paragraphs.feed("\nd") == [Whole(0, "\n ab\nc"), Piece(1, "d")]
    assert paragraphs.feed("") == []
    assert paragraphs.finish() == [Whole(1, "d")]


def test_a_partial_delimiter_at_the_end_is_text():
    assert played(["a", "--"], "---") == [Piece(0, "a"), Piece(0, "--"), Whole(0, "a--")]
    assert played(["--"], "---") == [Piece(0, "--"), Whole(0, "--")]


def test_white_space_before_a_possible_delimiter_is_kept():
    assert played(["  --", "x"], "---") == [Piece(0, "  --x"), Whole(0, "  --x")]
    assert played(["  --", "-x"], "---") == [Piece(0, "x"), Whole(0, "x")]
