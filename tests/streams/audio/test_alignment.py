"""Two texts are aligned with a minimal number of differences."""

import itertools
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.audio import alignment
from streams.audio.alignment import matches

ROW = ["row", "row", "row", "your", "boat", "gently", "down", "the", "stream"] * 3


def pairs(one: list[str], other: list[str]) -> list[tuple[int, int]]:
    return [
        (begin + step, beside + step)
        for begin, end, beside, _ in matches(one, other)
        for step in range(end - begin)
    ]


def test_an_inserted_word_in_a_repetitive_text_is_one_difference() -> None:
    assert len(pairs(ROW, [*ROW[:10], "row", *ROW[10:]])) == len(ROW)
    assert len(pairs([*ROW[:10], "row", *ROW[10:]], ROW)) == len(ROW)


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_matches_are_equal_in_order_and_complete(one: list[str], other: list[str]) -> None:
    found = pairs(one, other)
    assert all(one[at] == other[to] for at, to in found)
    assert found == sorted(set(found))
    assert all(before[0] < at and before[1] < to for before, (at, to) in itertools.pairwise(found))
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    assert len(found) >= sum(block.size for block in blocks)


def test_very_long_texts_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_MAX_CELLS", 10)
    one = [str(number) for number in range(50)]
    assert len(pairs(one, ["x", *one[:20], "y", *one[22:]])) == 48
