"""Holds a synthesis back until it is known that it sounds, and that it comes faster than it is played.

For want of 300 ms of audio nothing is said about its pace: once all of it is there, no player can run dry.
"""

import asyncio
from array import array
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager
from typing import Protocol

from prometheus_client import Counter

from streams.audio import pcm_seconds
from streams.mp3 import Mp3Joiner
from streams.mp3_sound import has_sound
from vendors.errors import Empty, Garbled, VendorError
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage
from vendors.speech.samples import Samples

SLOW = Counter("parley_slow_audio", "Speech that was sent although it came too slowly", ["vendor"])

WINDOW_MS = 300
"""Of audio: enough to judge a pace by."""
_LONGEST_SILENCE_MS = 5_000
"""That the only strategy may begin with."""
_HELD_BYTES = 1024 * 1024
_QUIET = 64
"""No sample of what counts as silence is louder (-54 dB)."""


class TooSlow(VendorError):
    """Audio that a player would wait for."""


class RemainingAttempts:
    """The strategies that may speak one text, in the order in which they are tried."""

    def __init__(self) -> None:
        self._places = 0
        self._reached = 0
        self._trying = 0

    def place(self) -> int:
        """The next place in that order."""
        self._places += 1
        return self._places

    @contextmanager
    def trying(self, place: int) -> Iterator[None]:
        """The strategy of that place is tried while the block lasts."""
        self._reached = max(self._reached, place)
        self._trying += 1
        try:
            yield
        finally:
            self._trying -= 1

    @property
    def alone(self) -> bool:
        """Whether none is left beside the one that is tried, nor behind it."""
        return self._trying <= 1 and self._reached == self._places


@asynccontextmanager
async def guarded(
    synthesis: AbstractAsyncContextManager[AsyncIterator[SpeechItem]], guard: "Guard"
) -> AsyncIterator[AsyncIterator[SpeechItem]]:
    """The items of `synthesis` as they are; a `VendorError` before any audio where it is not to be sent."""
    async with synthesis as items, aclosing(_passed(items, guard)) as passed:
        yield passed


async def _passed(items: AsyncIterator[SpeechItem], guard: "Guard") -> AsyncGenerator[SpeechItem]:
    now = asyncio.get_running_loop().time
    away_s = 0.0
    try:
        async for item in items:
            if guard.settled:
                yield item
                continue
            due = guard.take(item, now() - away_s)
            left_s = now()
            for one in due:
                yield one
            away_s += now() - left_s
        for one in guard.end():
            yield one
    except VendorError:
        for one in guard.dropped():
            yield one
        raise


class Guard:
    """Decides when items are passed on. Knows no clock: `now_s` is when an item came. Pure but for the counter.

    `factor`: seconds of audio that must arrive per second. Where `remaining` leaves nobody else to speak, audio is
    not held for its pace but only until it sounds. A text without letters and digits may rightly be silent.
    """

    def __init__(self, vendor: str, text: str, *, factor: float, remaining: RemainingAttempts) -> None:
        self.settled = False
        """Whether items are passed on whatever they are."""
        self._vendor = vendor
        self._silent_well = not any(letter.isalnum() for letter in text)
        self._factor = factor
        self._remaining = remaining
        self._held: list[SpeechItem] = []
        self._held_bytes = 0
        self._released = False
        self._sound: _Sound | None = None
        self._first: tuple[float, float] | None = None
        """When the first audio came, and its length in milliseconds."""

    def take(self, item: SpeechItem, now_s: float) -> Sequence[SpeechItem]:
        """What is to be passed on once `item` has come."""
        self._held.append(item)
        if isinstance(item, SpeechFormat):
            self._sound = _Mp3Sound() if item.mime_type == "audio/mpeg" else _PcmSound(item.sample_rate)
        elif isinstance(item, AudioBytes) and item.audio and self._sound is not None:
            self._held_bytes += len(item.audio)
            self._hear(self._sound, item.audio, now_s)
        return self._let_go() if self._released else ()

    def end(self) -> Sequence[SpeechItem]:
        """What is to be passed on once all has come."""
        if self._sound is not None and self._held_bytes and not self._released:
            self._sound.end()
            if not self._sound.length_ms:
                raise Empty(self._vendor, "answered with no audio")
            if not self._sound.audible and not self._silent_well:
                raise self._silent()
        return self._let_go()

    def dropped(self) -> Sequence[SpeechItem]:
        """What is held and is true of a synthesis that failed, too: its cost."""
        return [item for item in self._let_go() if isinstance(item, Usage)]

    def _hear(self, sound: "_Sound", audio: bytes, now_s: float) -> None:
        before_ms = sound.length_ms
        sound.hear(audio)
        if self._first is None:
            self._first = now_s, sound.length_ms
        if not self._released:
            self._listen(sound)
        if sound.length_ms >= WINDOW_MS and (self._released or sound.audible or self._silent_well):
            self._judge(sound, now_s, last_ms=sound.length_ms - before_ms)

    def _listen(self, sound: "_Sound") -> None:
        alone = self._remaining.alone
        if sound.audible or (self._silent_well and sound.length_ms):
            self._released = alone
        elif sound.length_ms >= (_LONGEST_SILENCE_MS if alone else WINDOW_MS):
            raise self._silent()
        elif self._held_bytes > _HELD_BYTES:
            raise Garbled(self._vendor, "sent no audio that can be played")

    def _judge(self, sound: "_Sound", now_s: float, *, last_ms: float) -> None:
        """The pace between the first audio and the last; either may be the piece that was made before or after."""
        assert self._first is not None, "audio was heard"
        first_s, first_ms = self._first
        made_ms, took_ms = sound.length_ms - min(first_ms, last_ms), (now_s - first_s) * 1000
        self.settled = True
        if made_ms < self._factor * took_ms:
            if not self._released:
                told = f"sent its audio at {made_ms / took_ms:.2f} of the speed at which it is played"
                raise TooSlow(self._vendor, told, retryable=True)
            SLOW.labels(self._vendor).inc()
        self._released = True

    def _let_go(self) -> Sequence[SpeechItem]:
        held, self._held = self._held, []
        return held

    def _silent(self) -> Empty:
        return Empty(self._vendor, "answered with silence")


class _Sound(Protocol):
    """The audio so far: how long it is, and whether any of it can be heard."""

    audible: bool

    @property
    def length_ms(self) -> float: ...

    def hear(self, audio: bytes) -> None: ...

    def end(self) -> None: ...


class _Mp3Sound:
    """Whole frames are heard; of one that is under way the length counts."""

    def __init__(self) -> None:
        self.audible = False
        self._joiner = Mp3Joiner()

    @property
    def length_ms(self) -> float:
        return self._joiner.duration_ms + self._joiner.held_ms

    def hear(self, audio: bytes) -> None:
        self._listen(self._joiner.feed(audio))

    def end(self) -> None:
        self._listen(self._joiner.end())

    def _listen(self, frames: bytes) -> None:
        self.audible = self.audible or has_sound(frames)


class _PcmSound:
    """16-bit mono samples."""

    def __init__(self, sample_rate: int) -> None:
        self.audible = False
        self._samples = Samples()
        self._rate = sample_rate
        self._bytes = 0

    @property
    def length_ms(self) -> float:
        return pcm_seconds(self._bytes, self._rate) * 1000

    def hear(self, audio: bytes) -> None:
        whole = self._samples.whole(audio)
        self._bytes += len(whole)
        if not self.audible and whole:
            samples = array("h", whole)
            self.audible = max(samples) - min(samples) > 2 * _QUIET  # whatever level it lies at

    def end(self) -> None:
        """A half sample is no sound."""
