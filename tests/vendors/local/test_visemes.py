"""Mouth shapes follow from phonemes or letters."""
# ruff: noqa: RUF001 - letters of phonetics are meant, not their Latin look-alikes

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vendors.protocols import Viseme
from vendors.speech.visemes import estimate, spread, visemes_of, visemes_of_letters

PHONEMES = st.sampled_from(
    ["a", "ʊ", "ˈoʊ", "t", "ʃ", "_", "", " ", "ˈ", "ː", "m", "ɑːɹ", "tɕ", "ɑ̃", "ç", "?", "X", "^", "."]
)


@given(st.lists(st.tuples(PHONEMES | st.text(max_size=3), st.integers(0, 10_000)), max_size=60))
def test_shapes_are_ascending_and_differ_from_their_neighbours(phonemes: list[tuple[str, int]]) -> None:
    check(visemes_of(phonemes))


@given(st.lists(PHONEMES, max_size=40))
def test_shapes_begin_with_their_phonemes(phonemes: list[str]) -> None:
    timed = [(phoneme, 10 * index) for index, phoneme in enumerate(phonemes)]
    assert {shape.offset_ms for shape in visemes_of(timed)} <= {offset for _, offset in timed}


@given(st.text(max_size=300), st.integers(0, 100_000))
def test_estimated_shapes_fill_the_duration_and_end_closed(text: str, duration_ms: int) -> None:
    shapes = estimate(text, duration_ms)
    check(shapes)
    if shapes:
        assert shapes[0].offset_ms == 0
        assert shapes[-1].viseme_id == 0
        assert shapes[-1].offset_ms <= duration_ms
    if any(letter.isalnum() for letter in text) and duration_ms > 0:
        assert shapes


def check(shapes: list[Viseme]) -> None:
    assert all(0 <= shape.viseme_id <= 21 for shape in shapes)
    for before, after in itertools.pairwise(shapes):
        assert before.offset_ms < after.offset_ms
        assert before.viseme_id != after.viseme_id


@pytest.mark.parametrize(
    ("phonemes", "ids"),
    [
        ([("h", 0), ("ə", 50), ("l", 100), ("ˈoʊ", 150), ("_", 300)], [12, 1, 14, 8, 0]),
        ([("b", 0), ("ˈɔɪ", 80)], [21, 10]),
        ([("b", 0), ("ɔ", 80), ("ɪ", 120)], [21, 10]),  # One sound, reported as two phonemes.
        ([("n", 0), ("ˈ", 50), ("a", 60), ("ʊ", 90)], [19, 9]),
        ([("t", 0), ("ʃ", 20), ("ɜ", 60), ("ː", 80), ("t", 120), ("ʃ", 140)], [16, 5, 16]),
        ([("a", 0), (" ", 30), ("ɪ", 40)], [2, 6]),  # Two words.
        ([("k", 0), ("ɡ", 40), ("ŋ", 80)], [20]),
        ([("m", 0), ("p", 30), ("ɛɹ", 60)], [21, 4]),
        ([("ʁ", 0), ("ɑ̃", 30), ("ç", 60), ("yː", 90)], [13, 2, 16, 7]),
        ([("☃", 0)], [0]),
        ([], []),
    ],
)
def test_phonemes_are_mapped_to_shapes(phonemes: list[tuple[str, int]], ids: list[int]) -> None:
    assert [shape.viseme_id for shape in visemes_of(phonemes)] == ids


def test_shapes_without_duration_are_dropped() -> None:
    assert visemes_of([("_", 5), ("m", 5), ("ɑ", 40)]) == [Viseme(5, 21), Viseme(40, 2)]


def test_shapes_are_estimated_from_letters_in_order() -> None:
    assert [shape.viseme_id for shape in estimate("Show me", 700)] == [16, 9, 21, 4, 0]
    assert estimate("", 500) == estimate("hello", 0) == []
    assert len(estimate("你好", 400)) == 5


@given(st.text(max_size=60), st.integers(1, 500))
def test_timed_letters_have_shapes_within_their_times(text: str, each_ms: int) -> None:
    timed = [(letter, at * each_ms, (at + 1) * each_ms) for at, letter in enumerate(text)]
    shapes = visemes_of_letters(timed)
    check(shapes)
    assert all(0 <= shape.offset_ms < len(text) * each_ms for shape in shapes)


def test_letters_of_one_sound_form_one_shape() -> None:
    timed = [("S", 10, 20), ("h", 20, 30), ("ö", 30, 50), (" ", 50, 60), ("你", 60, 80)]
    assert visemes_of_letters(timed) == [Viseme(10, 16), Viseme(30, 8), Viseme(60, 19), Viseme(70, 1)]


@given(st.lists(st.tuples(st.text(max_size=20), st.integers(0, 400)), max_size=8))
def test_texts_are_spread_over_their_own_times(spans: list[tuple[str, int]]) -> None:
    ends = list(itertools.accumulate(length for _, length in spans))
    timed = [(text, end - length, end) for (text, length), end in zip(spans, ends, strict=True)]
    shapes = spread(timed)
    check(shapes)
    assert all(0 <= shape.offset_ms <= ends[-1] for shape in shapes)
