"""Audio is held until it is audible and arrives fast enough, and then passed on unchanged."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from streams.tasks import background
from tests.streams.mp3_files import tagged_mp3, tone
from tests.streams.pieces import split
from vendors.attempts import Attempt, AttemptRecord
from vendors.errors import Empty, Garbled, Refused, VendorError
from vendors.fallback import first_success
from vendors.meter import Meter
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage, Viseme, Visemes
from vendors.sandbox.content import mp3
from vendors.speech.guard import Guard, RemainingAttempts, TooSlow, guarded

RATE = 24_000
WAV = SpeechFormat("audio/wav", RATE)
MP3 = SpeechFormat("audio/mpeg", RATE)
KINDS = [WAV, MP3]

Timed = tuple[float, SpeechItem]


def remaining_of(left: int) -> RemainingAttempts:
    """Return the remaining attempts of the first one, which is running, while `left` more follow."""
    remaining = RemainingAttempts()
    for _ in range(left + 1):
        remaining.register()
    remaining.trying(1).__enter__()
    return remaining


def guard_of(*, left: int = 1, text: str = "Hello", factor: float = 1.2) -> Guard:
    return Guard("acme", text, factor=factor, remaining=remaining_of(left))


def coded(pcm: bytes, kind: SpeechFormat) -> bytes:
    return pcm if kind is WAV else mp3(pcm, RATE)


@cache
def speech(seconds: float, kind: SpeechFormat = WAV) -> bytes:
    return coded(tone(seconds=seconds, sample_rate=RATE), kind)


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


def slow_audio() -> float:
    return REGISTRY.get_sample_value("parley_slow_audio_total", {"vendor": "acme"}) or 0


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


@dataclass
class Voice:
    """A voice with given items and waits between them, which records the state of its call."""

    items: Sequence[SpeechItem | float | VendorError]
    holds: bool = False
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    closed: bool = False

    @asynccontextmanager
    async def speak(self) -> AsyncIterator[AsyncIterator[SpeechItem]]:
        try:
            yield self._spoken()
        finally:
            self.closed = True

    async def _spoken(self) -> AsyncIterator[SpeechItem]:
        for item in self.items:
            if isinstance(item, VendorError):
                raise item
            if isinstance(item, float):
                await asyncio.sleep(item)
            else:
                yield item
        if self.holds:
            self.waiting.set()
            await asyncio.Event().wait()


async def heard(*voices: Voice, hedge_s: float | None = None) -> tuple[str, list[SpeechItem], list[AttemptRecord]]:
    """Return the output of `voices`, which are tried in order."""
    remaining = RemainingAttempts()

    def attempt(number: int, voice: Voice) -> Attempt[SpeechItem]:
        position = remaining.register()

        @asynccontextmanager
        async def opened() -> AsyncIterator[AsyncIterator[SpeechItem]]:
            with remaining.trying(position):
                guard = Guard("acme", "Hello", factor=1.2, remaining=remaining)
                async with guarded(voice.speak(), guard) as items:
                    yield items

        return Attempt(
            str(number),
            "tts",
            "acme",
            opened,
            lambda item: isinstance(item, AudioBytes) and bool(item.audio),
            first_output_s=3,
            between_s=3,
            hedge=hedge_s,
            meter=lambda: Meter(5),
        )

    records: list[AttemptRecord] = []
    attempts = [attempt(number, voice) for number, voice in enumerate(voices)]
    async with first_success(attempts, records) as (winner, items):
        said = [item async for item in items]
    return winner.strategy, said, records


def slow_speech() -> list[SpeechItem | float]:
    """Yield speech at half the speed of its playback."""
    audio = split(speech(0.4), range(0, 20_000, 2_400))
    return [WAV, Usage(9, 0), *(part for piece in audio for part in (AudioBytes(piece), 0.1))]


async def test_a_slow_voice_is_replaced_and_its_call_closed_and_billed():
    slow, good = Voice(slow_speech()), Voice([WAV, AudioBytes(speech(0.5))])
    winner, said, records = await heard(slow, good)
    assert (winner, said) == ("1", good.items)
    assert slow.closed
    assert [record.outcome for record in records] == ["failed", "won"]
    assert "times the playback speed" in records[0].failure.message
    assert (records[0].meter.source, records[0].usage) == ("vendor", Usage(9, 0))


async def test_an_error_after_held_audio_leads_to_the_next_voice():
    broken = Voice([WAV, AudioBytes(speech(0.2)), Usage(9, 0), Refused("acme", "broke off")])
    winner, _, records = await heard(broken, Voice([WAV, AudioBytes(speech(0.5))]))
    assert winner == "1"
    assert records[0].usage == Usage(9, 0)


async def test_every_item_is_metered_once_for_the_winner():
    good = Voice([WAV, Usage(2, 0), AudioBytes(speech(0.2)), AudioBytes(speech(0.5)), Usage(4, 1)])
    _, said, records = await heard(good, Voice([]))
    assert said == good.items
    assert records[0].usage == Usage(4, 1)


async def test_a_voice_with_held_audio_is_hedged():
    slow, good = Voice(slow_speech()), Voice([WAV, AudioBytes(speech(0.5))])
    winner, said, records = await heard(slow, good, hedge_s=0.05)
    assert (winner, said) == ("1", good.items)
    assert slow.closed
    assert [record.outcome for record in records] == ["hedged", "won"]


async def test_a_slow_voice_speaks_if_its_hedge_fails():
    slow = Voice(slow_speech())
    winner, said, _ = await heard(slow, Voice([Refused("acme", "answered 500")]), hedge_s=0.05)
    assert winner == "0"
    assert said == [item for item in slow.items if not isinstance(item, float)]


async def test_leaving_the_block_while_audio_is_held_closes_the_call():
    voice = Voice([WAV, AudioBytes(speech(0.2))], holds=True)
    async with background(heard(voice, Voice([]))):
        await voice.waiting.wait()
        assert not voice.closed
    assert voice.closed


async def test_reader_time_does_not_count_against_the_vendor():
    pieces = [AudioBytes(piece) for piece in split(speech(0.6), range(0, 40_000, 4_800))]
    before = slow_audio()
    guard = guard_of(left=0)
    async with guarded(Voice([WAV, *pieces]).speak(), guard) as items:
        async for _ in items:
            if not guard.decided:
                await asyncio.sleep(0.2)  # The reader is slow.
    assert guard.decided
    assert slow_audio() == before


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
