"""Long recordings are cut at pauses, and nothing is lost or repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.audio.slices import slices
from tests.streams.audio.pcm_samples import RATE, silence, tone

MAX_S = 12


@given(st.integers(min_value=0, max_value=200_000), st.sampled_from([1, 2]))
def test_pieces_form_the_whole_and_none_is_too_long(frames: int, channels: int):
    samples = bytes(frames * 2 * channels)

    pieces = list(slices(samples, sample_rate=4_000, channels=channels, max_s=MAX_S))

    assert b"".join(pieces) == samples
    assert all(len(piece) % (2 * channels) == 0 for piece in pieces)
    assert max(map(len, pieces)) <= MAX_S * 4_000 * 2 * channels


@pytest.mark.parametrize("talked_s", [3.5, 7, 11])
def test_the_cut_is_in_the_pause(talked_s: float):
    first, *_ = slices(tone(talked_s) + silence(0.4) + tone(9), sample_rate=RATE, max_s=MAX_S)

    assert talked_s < len(first) / (2 * RATE) < talked_s + 0.4
