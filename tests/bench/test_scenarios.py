"""Durations of a load are parsed, and a load can be divided between several generators."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.scenarios import Load, seconds


@pytest.mark.parametrize(("text", "expected"), [("20ms", 0.02), ("1.5s", 1.5), ("2m", 120), ("3", 3), ("0", 0)])
def test_durations_have_units(text: str, expected: float):
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "ms", "-1s", "1h", "1s ", "nan"])
def test_invalid_durations_are_refused(text: str):
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(text)


@given(streams=st.integers(0, 10_000), at_once=st.integers(0, 500), count=st.integers(1, 9))
def test_the_shares_of_a_load_add_up(streams: int, at_once: int, count: int):
    parts = Load("load", ["a"], streams=streams, at_once=at_once, rate=90).parts(count)

    assert sum(part.streams for part in parts) == streams
    assert sum(part.at_once for part in parts) == at_once
    assert sum(part.rate for part in parts) == pytest.approx(90)
    assert max(part.at_once for part in parts) - min(part.at_once for part in parts) <= 1
