"""Audio is held until it is audible and arrives fast enough, and then passed on unchanged."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.streams.audio.mp3_files import tagged_mp3
from tests.streams.pieces import split
from tests.vendors.speech.paced_audio import RATE, WAV, coded, guard_of, slow_audio, speech
from vendors.errors import Empty, Garbled
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage, Viseme, Visemes
from vendors.speech.guard import Guard, RemainingAttempts, TooSlow

MP3 = SpeechFormat("audio/mpeg", RATE)
KINDS = [WAV, MP3]
Timed = tuple[float, SpeechItem]


def silence(seconds: float, kind: SpeechFormat = WAV) -> bytes:
    return coded(bytes(int(seconds * RATE) * 2), kind)


def paced(audio: bytes, seconds: float, *, piece_ms: float, pace: float, begin_s: float = 0.0) -> list[Timed]:
    """Yield `audio` in pieces in real time."""
    pieces = max(1, round(seconds * 1000 / piece_ms))
    size = len(audio) // pieces // 2 * 2
    cut = split(audio, [size * number for number in range(1, pieces)])
    each_s = seconds / pieces / pace
    return [(begin_s + (number + 1) * each_s, AudioBytes(piece)) for number, piece in enumerate(cut)]


def passed(
    guard: Guard, timeline: Sequence[Timed], kind: SpeechFormat = WAV, *, out: list[Timed] | None = None
) -> list[Timed]:
    """Return the items that are passed on, with their times. They are appended to `out` too."""
    out = [] if out is None else out
    out += [(0.0, item) for item in guard.feed(kind, 0)]
    now_s = 0.0
    for now_s, item in timeline:
        due = [item] if guard.decided else guard.feed(item, now_s)
        out += [(now_s, one) for one in due]
    return out + [(now_s, item) for item in guard.end()]


def items_of(timeline: Sequence[Timed]) -> list[SpeechItem]:
    return [item for _, item in timeline]


@pytest.mark.parametrize("kind", KINDS)
@given(
    cuts=st.lists(st.integers(0, 40_000), max_size=30),
    others=st.lists(st.tuples(st.integers(0, 30), st.sampled_from([Usage(3, 0), Visemes([Viseme(9, 2)])]))),
    seconds=st.sampled_from([0.05, 0.25, 0.8]),
    left=st.integers(0, 2),
)
def test_items_and_their_order_are_the_same_for_every_split(
    kind: SpeechFormat, cuts: list[int], others: list[tuple[int, SpeechItem]], seconds: float, left: int
):
    items: list[SpeechItem] = [AudioBytes(piece) for piece in split(speech(seconds, kind), cuts)]
    for at, item in others:
        items.insert(at, item)

    out = passed(guard_of(left=left), [(0.0, item) for item in items], kind)

    assert items_of(out) == [kind, *items]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [0, 1])
@given(piece_ms=st.floats(5, 400), begin_s=st.floats(0, 9))
def test_a_fast_vendor_is_delayed_by_20_ms_at_most(kind: SpeechFormat, left: int, piece_ms: float, begin_s: float):
    timeline = paced(speech(2.0, kind), 2.0, piece_ms=piece_ms, pace=20, begin_s=begin_s)

    out = passed(guard_of(left=left), timeline, kind)[1:]

    assert items_of(out) == items_of(timeline)
    assert max(late - came for (late, _), (came, _) in zip(out, timeline, strict=True)) <= 0.020


@pytest.mark.parametrize("kind", KINDS)
@given(piece_ms=st.floats(20, 250), pace=st.floats(0.05, 0.9))
def test_audio_slower_than_playback_is_refused_before_any_output(kind: SpeechFormat, piece_ms: float, pace: float):
    out: list[Timed] = []

    with pytest.raises(TooSlow, match=r"acme sent its audio at \d\.\d\d times the playback speed"):
        passed(guard_of(), paced(speech(2.0, kind), 2.0, piece_ms=piece_ms, pace=pace), kind, out=out)

    assert out == []


@pytest.mark.parametrize(("pace", "factor"), [(1.4, 1.2), (2.1, 2.0), (0.6, 0.5), (0.01, 0)])
def test_audio_slightly_faster_than_required_is_accepted(pace: float, factor: float):
    timeline = paced(speech(2.0), 2.0, piece_ms=50, pace=pace, begin_s=8)
    assert items_of(passed(guard_of(factor=factor), timeline)) == [WAV, *items_of(timeline)]


def test_a_burst_split_by_the_network_is_judged_as_one():
    head, rest = split(speech(0.6), [int(0.28 * RATE) * 2])
    tip, tail = split(rest, [960])
    timeline: list[Timed] = [(0.0, AudioBytes(head)), (0.2, AudioBytes(tip)), (0.2, AudioBytes(tail))]
    assert items_of(passed(guard_of(), timeline))[1:] == items_of(timeline)


def test_short_audio_that_is_all_there_is_not_too_slow():
    timeline = paced(speech(0.25), 0.25, piece_ms=50, pace=0.1)
    out = passed(guard_of(), timeline)
    assert items_of(out) == [WAV, *items_of(timeline)]
    assert {at for at, _ in out[1:]} == {timeline[-1][0]}


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_voice_is_accepted_at_any_speed_and_counted_once(kind: SpeechFormat):
    timeline = paced(speech(1.0, kind), 1.0, piece_ms=100, pace=0.5)
    before = slow_audio()

    assert passed(guard_of(left=0), timeline, kind)[1:] == timeline

    assert slow_audio() - before == 1


def test_no_fast_audio_is_counted_as_slow():
    before = slow_audio()
    passed(guard_of(left=0), paced(speech(1.0), 1.0, piece_ms=100, pace=2))
    assert slow_audio() == before


def test_the_last_strategy_may_change_while_audio_is_held():
    remaining = RemainingAttempts()
    positions = [remaining.register(), remaining.register()]
    timeline = paced(speech(1.0), 1.0, piece_ms=100, pace=0.5)
    guard = Guard("acme", "Hello", factor=1.2, remaining=remaining)
    with remaining.trying(positions[0]):
        with remaining.trying(positions[1]):
            assert guard.feed(WAV, 0) == ()
            assert guard.feed(timeline[0][1], timeline[0][0]) == ()
            assert not remaining.alone
        assert guard.feed(timeline[1][1], timeline[1][0]) == [WAV, *items_of(timeline[:2])]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seconds", [0.1, 3.0])
@pytest.mark.parametrize("left", [0, 1])
def test_silence_is_refused_from_every_voice(kind: SpeechFormat, seconds: float, left: int):
    timeline = paced(silence(seconds, kind), seconds, piece_ms=100, pace=20)
    with pytest.raises(Empty, match="acme sent only silence"):
        passed(guard_of(left=left), timeline, kind)


def test_silence_is_refused_after_300_ms_if_another_voice_remains():
    guard = guard_of()
    guard.feed(WAV, 0)
    assert guard.feed(AudioBytes(silence(0.29)), 0) == ()
    with pytest.raises(Empty):
        guard.feed(AudioBytes(silence(0.02)), 0)


def test_the_last_voice_may_begin_with_limited_silence():
    late: list[Timed] = [(0.0, AudioBytes(silence(2.0))), (0.1, AudioBytes(speech(0.5)))]
    assert items_of(passed(guard_of(left=0), late)) == [WAV, *items_of(late)]
    with pytest.raises(Empty):
        passed(guard_of(left=0), [(0.1 * number, AudioBytes(silence(0.5))) for number in range(11)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [0, 1])
@pytest.mark.parametrize("seconds", [0.1, 1.0])
def test_text_without_letters_may_be_silent(kind: SpeechFormat, left: int, seconds: float):
    timeline = paced(silence(seconds, kind), seconds, piece_ms=100, pace=20)
    out = passed(guard_of(left=left, text="… !"), timeline, kind)
    assert items_of(out) == [kind, *items_of(timeline)]


def test_text_without_letters_must_not_be_slow():
    with pytest.raises(TooSlow):
        passed(guard_of(text="…"), paced(silence(1.0), 1.0, piece_ms=100, pace=0.5))


@pytest.mark.parametrize("text", ["Hello", "…"])
@pytest.mark.parametrize("left", [0, 1])
def test_bytes_that_are_not_mp3_frames_are_not_audio(text: str, left: int):
    with pytest.raises(Empty, match="sent no audio"):
        passed(guard_of(left=left, text=text), [(0.0, AudioBytes(b"<html>" * 100))], MP3)
    with pytest.raises(Garbled, match="no audio that can be played"):
        passed(guard_of(left=left, text=text), [(0.0, AudioBytes(b"<html>" * 10_000))] * 20, MP3)


def test_audio_announcements_without_audio_are_not_passed_on():
    assert items_of(passed(guard_of(), [(0.0, Usage(5, 0)), (0.0, AudioBytes(b""))])) == [
        WAV,
        Usage(5, 0),
        AudioBytes(b""),
    ]


def test_tags_before_an_mp3_are_not_audio():
    guard = guard_of(left=0)
    guard.feed(MP3, 0)
    tagged = tagged_mp3(seconds=0.5)
    tag = tagged[: tagged.index(b"\xff\xf3")]
    assert guard.feed(AudioBytes(tag), 0) == ()
    assert guard.feed(AudioBytes(tagged[len(tag) :]), 0) == [
        MP3,
        AudioBytes(tag),
        AudioBytes(tagged[len(tag) :]),
    ]
