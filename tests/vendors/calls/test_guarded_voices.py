"""A voice with slow, silent or missing audio is replaced by the next one before anything is heard."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from streams.tasks import background
from tests.streams.pieces import split
from tests.vendors.speech.paced_audio import WAV, guard_of, slow_audio, speech
from vendors.calls.attempts import Attempt, AttemptRecord
from vendors.calls.fallback import first_success
from vendors.calls.meter import Meter
from vendors.errors import Refused, VendorError
from vendors.protocols import AudioBytes, SpeechItem, Usage
from vendors.speech.guard import Guard, RemainingAttempts, guarded


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
