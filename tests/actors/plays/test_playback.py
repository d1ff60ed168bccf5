"""The heard words follow from the audio that was played."""

from hypothesis import given
from hypothesis import strategies as st

from actors.plays.playback import Playback


def played(*spans: tuple[int, str, int], shapes: list[tuple[int, int]] | None = None) -> Playback:
    """Return a playback of consecutive texts, each given by its index, text and length in ms."""
    playback, at = Playback(), 0
    for index, text, length_ms in spans:
        playback.begin(index, text, at)
        at += length_ms
        playback.end(at, shapes or [])
    return playback


def test_words_that_were_played_completely_are_kept() -> None:
    playback = played((0, "one two three four ", 1900))
    assert playback.heard(0) == {0: 0}
    assert playback.heard(350) == {0: 3}
    assert playback.heard(690) == {0: 3}
    assert playback.heard(800) == {0: 7}
    assert playback.heard(1899) == {0: 13}
    assert playback.heard(1900) is None


def test_mouth_shapes_follow_the_words_instead_of_the_mean_pace() -> None:
    slow_start = [(1000 + 50 * nth, 4) for nth in range(20)]
    playback = played((0, "one two three four", 2000), shapes=[(0, 0), *slow_start])
    assert playback.heard(900) == {0: 0}
    assert playback.heard(1500)[0] in {7, 13}


def test_complete_sentences_are_kept() -> None:
    playback = played((0, "First. ", 1000), (0, "Second one.", 1000), (1, "Third and last.", 1000))
    assert playback.heard(1600) == {0: len("First. Second")}
    assert playback.heard(2400) == {0: len("First. Second one."), 1: len("Third")}


def test_text_without_spaces_is_split_between_characters() -> None:
    assert played((0, "我今天很高兴", 600)).heard(310) == {0: 3}


def test_an_unfinished_sentence_counts_at_the_observed_pace() -> None:
    playback = played((0, "ten letters ", 1200))
    playback.begin(0, "and some more words", 1200)
    assert playback.heard(1200 + 900) == {0: len("ten letters and some")}


def test_nothing_is_heard_without_playback() -> None:
    assert Playback().heard(5000) == {}
    assert not Playback().began


@given(
    st.lists(st.tuples(st.integers(0, 3), st.text("ab cd 好.", max_size=20), st.integers(0, 2000)), max_size=6),
    st.lists(st.integers(0, 12_000), min_size=2, max_size=2).map(sorted),
)
def test_heard_text_grows_with_the_playback_time(spans: list[tuple[int, str, int]], times: list[int]) -> None:
    playback = played(*sorted(spans, key=lambda span: span[0]))
    less, more = (playback.heard(at) for at in times)
    if more is not None:
        assert less is not None
        assert all(count <= more.get(index, 0) for index, count in less.items())
