"""Several MP3 files are joined, whatever the pieces."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streams.audio.mp3 import MAX_FRAME_BYTES, Mp3Joiner, mp3_duration_ms, mp3_header
from tests.streams.audio.mp3_files import plain_mp3, played_ms, tagged_mp3

RATES = [8_000, 16_000, 22_050, 24_000, 44_100, 48_000]
ID3V2 = b"ID3\x04\x00\x00\x00\x00\x02\x01" + b"t" * 257
ID3V1 = b"TAG" + b"t" * 125


def joined(*mp3s: bytes) -> bytes:
    joiner = Mp3Joiner()
    return b"".join(joiner.feed(mp3) + joiner.end() for mp3 in mp3s)


def in_pieces(mp3: bytes, cuts: list[int]) -> tuple[bytes, Mp3Joiner]:
    joiner = Mp3Joiner()
    positions = [0, *sorted(cut % (len(mp3) + 1) for cut in cuts), len(mp3)]
    passed = b"".join(joiner.feed(mp3[a:b]) for a, b in pairwise(positions))
    return passed + joiner.end(), joiner


def with_info_frame(mp3: bytes, name: bytes) -> bytes:
    """Return the MP3 with an info frame before the first frame."""
    header = mp3_header(mp3)
    assert header is not None
    position = 36 if name == b"VBRI" else {1152: 21, 576: 13}[header.samples]
    frame = mp3[:4].ljust(position, b"\0") + name
    return frame.ljust(header.frame_bytes, b"\0") + mp3


@pytest.mark.parametrize("sample_rate", RATES)
def test_frames_are_passed_on_unchanged(sample_rate: int):
    mp3 = plain_mp3(sample_rate=sample_rate)

    assert joined(mp3) == mp3


@pytest.mark.parametrize("sample_rate", RATES)
def test_duration_equals_what_a_player_plays(sample_rate: int):
    mp3 = plain_mp3(sample_rate=sample_rate)

    assert mp3_duration_ms(mp3) == pytest.approx(played_ms(mp3), abs=0.5)


@pytest.mark.parametrize("sample_rate", [16_000, 24_000, 44_100])
def test_joined_mp3s_play_as_long_as_all_of_them(sample_rate: int):
    first = tagged_mp3(seconds=0.5, sample_rate=sample_rate)
    second = tagged_mp3(seconds=0.8, sample_rate=sample_rate)
    both = joined(first, second)

    assert b"TAG" not in both
    assert b"ID3" not in both
    assert b"Info" not in both
    assert played_ms(both) == pytest.approx(mp3_duration_ms(first) + mp3_duration_ms(second), abs=1)


@pytest.mark.parametrize("name", [b"Xing", b"Info", b"VBRI"])
@pytest.mark.parametrize("sample_rate", RATES)
def test_mp3_info_frame_is_not_counted_as_audio(sample_rate: int, name: bytes):
    mp3 = plain_mp3(sample_rate=sample_rate)

    assert joined(with_info_frame(mp3, name)) == mp3


def test_each_mp3_may_have_its_own_tags_and_table():
    mp3 = plain_mp3()
    tagged = ID3V2 + ID3V2 + with_info_frame(mp3, b"Xing") + ID3V1

    assert joined(tagged, tagged) == mp3 + mp3
    assert joined(tagged + tagged) == mp3 + mp3


def test_frames_are_passed_on_when_the_next_one_begins():
    mp3 = plain_mp3()
    header = mp3_header(mp3)
    assert header is not None
    joiner = Mp3Joiner()

    assert joiner.feed(mp3[: header.frame_bytes + 3]) == b""
    assert joiner.feed(mp3[header.frame_bytes + 3 : header.frame_bytes + 4]) == mp3[: header.frame_bytes]
    assert (
        joiner.feed(mp3[header.frame_bytes + 4 : 3 * header.frame_bytes])
        == (mp3[header.frame_bytes : 3 * header.frame_bytes])
    )


def test_truncated_last_frame_is_dropped():
    mp3 = plain_mp3()

    whole = joined(mp3[:-10])
    assert mp3.startswith(whole)
    assert joined(whole, mp3) == whole + mp3


def test_duration_is_known_while_audio_arrives():
    mp3 = plain_mp3(seconds=1.0)
    joiner = Mp3Joiner()
    seen = []
    for start in range(0, len(mp3), 500):
        joiner.feed(mp3[start : start + 500])
        seen.append(joiner.duration_ms)

    assert seen == sorted(seen)
    assert 0 < seen[3] < seen[-1] == mp3_duration_ms(mp3)
    assert joiner.sample_rate == 24_000


def test_bytes_between_frames_are_dropped():
    mp3 = plain_mp3()
    header = mp3_header(mp3)
    assert header is not None
    middle = 5 * header.frame_bytes

    assert joined(b"\0" * 100 + mp3) == mp3
    assert joined(mp3[:middle] + b"\xff\xf3junk\xff" + mp3[middle:]) == mp3
    assert joined(mp3 + b"APETAGEX" + b"\0" * 60) == mp3


def test_a_single_frame_is_a_valid_mp3():
    mp3 = plain_mp3()
    header = mp3_header(mp3)
    assert header is not None
    one = mp3[: header.frame_bytes]

    assert joined(one) == one
    assert joined(ID3V2 + one + ID3V1) == one


@given(st.binary(max_size=4000), st.lists(st.integers(min_value=0, max_value=4000), max_size=5))
def test_noise_is_filtered_the_same_for_every_split(noise: bytes, cuts: list[int]):
    assert in_pieces(noise, cuts)[0] == joined(noise)


parts = st.one_of(
    st.sampled_from([plain_mp3(), plain_mp3(sample_rate=44_100, kbps=128), tagged_mp3(), ID3V1, ID3V2, b"\xff"]),
    st.binary(max_size=30),
    st.builds(lambda size: plain_mp3()[:size], st.integers(min_value=0, max_value=1000)),
)


@given(
    st.lists(parts, max_size=4).map(b"".join),
    st.lists(st.integers(min_value=0, max_value=100_000), max_size=30),
)
@example(tagged_mp3(), list(range(len(tagged_mp3()))))
@example(ID3V2 + plain_mp3() + ID3V1 + ID3V2 + plain_mp3(), list(range(12_000)))
def test_every_split_of_the_same_bytes_gives_the_same_frames(mp3: bytes, cuts: list[int]):
    passed, joiner = in_pieces(mp3, cuts)
    whole, unsplit = in_pieces(mp3, [])

    assert passed == whole
    assert (joiner.duration_ms, joiner.frames, joiner.sample_rate) == (
        unsplit.duration_ms,
        unsplit.frames,
        unsplit.sample_rate,
    )


@given(st.lists(parts, max_size=4).map(b"".join))
def test_joining_is_idempotent(mp3: bytes):
    once = joined(mp3)
    frames = 0
    at = 0
    while at < len(once):
        header = mp3_header(once, at)
        assert header is not None
        frames, at = frames + 1, at + header.frame_bytes
    assert at == len(once)


def test_no_header_exceeds_the_maximum_frame_length():
    lengths = [
        header.frame_bytes
        for second in range(256)
        for third in range(256)
        if (header := mp3_header(bytes([0xFF, second, third, 0]))) is not None
    ]

    assert max(lengths) == MAX_FRAME_BYTES
    assert min(lengths) > 4


def test_partial_frames_count_by_their_received_bytes():
    mp3 = plain_mp3(seconds=0.5, sample_rate=24_000, kbps=48)
    whole_ms = mp3_duration_ms(mp3)
    joiner = Mp3Joiner()
    for at in range(0, len(mp3), 7):
        joiner.feed(mp3[at : at + 7])
        if joiner.frames:
            received_ms = min(len(mp3), at + 7) * whole_ms / len(mp3)
            assert joiner.duration_ms + joiner.held_ms == pytest.approx(received_ms, abs=2)
    joiner.end()
    assert (joiner.duration_ms, joiner.held_ms) == (whole_ms, 0)
