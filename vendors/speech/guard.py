"""Holds speech back until it is audible and arrives faster than it is played.

The speed is judged from 300 ms of audio. Shorter speech is passed on when it is complete, because a player cannot
run out of it.
"""

import asyncio
from array import array
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager
from typing import Protocol

from prometheus_client import Counter

from streams.audio.audio import pcm_seconds
from streams.audio.mp3 import Mp3Joiner
from streams.audio.mp3_sound import has_sound
from vendors.errors import Empty, Garbled, VendorError
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Usage
from vendors.speech.samples import Samples

SLOW = Counter("parley_slow_audio", "Speech that was sent although it came too slowly", ["vendor"])

WINDOW_MS = 300
"""The length of audio from which the speed is judged."""
_MAX_SILENCE_MS = 5_000
"""The longest initial silence that is accepted from the last remaining strategy."""
_MAX_HELD_BYTES = 1024 * 1024
_MAX_SILENT_AMPLITUDE = 64
"""The largest amplitude of silence (-54 dB)."""
_CHECKED_SAMPLES = 2048
"""Samples are checked in parts of this size until one is audible, because a check takes 20 ns per sample."""


class TooSlow(VendorError):
    """The audio arrives more slowly than it is played."""


class RemainingAttempts:
    """Tracks which strategies for one text have not been tried yet, in their order."""

    def __init__(self) -> None:
        self._count = 0
        self._reached = 0
        self._trying = 0

    def register(self) -> int:
        """Add a strategy at the end of the order and return its position."""
        self._count += 1
        return self._count

    @contextmanager
    def trying(self, position: int) -> Iterator[None]:
        """Mark the strategy at `position` as being tried during the block."""
        self._reached = max(self._reached, position)
        self._trying += 1
        try:
            yield
        finally:
            self._trying -= 1

    @property
    def alone(self) -> bool:
        """Whether no other strategy is being tried or still untried."""
        return self._trying <= 1 and self._reached == self._count


@asynccontextmanager
async def guarded(
    synthesis: AbstractAsyncContextManager[AsyncIterator[SpeechItem]], guard: "Guard"
) -> AsyncIterator[AsyncIterator[SpeechItem]]:
    """Return the items of `synthesis`. Raise a `VendorError` before any audio if `guard` rejects them."""
    async with synthesis as items, aclosing(_guarded_items(items, guard)) as guarded_items:
        yield guarded_items


async def _guarded_items(items: AsyncIterator[SpeechItem], guard: "Guard") -> AsyncGenerator[SpeechItem]:
    now = asyncio.get_running_loop().time
    consumer_s = 0.0
    try:
        async for item in items:
            if guard.decided:
                yield item
                continue
            ready = guard.feed(item, now() - consumer_s)
            yielded_s = now()
            for ready_item in ready:
                yield ready_item
            consumer_s += now() - yielded_s
        for ready_item in guard.end():
            yield ready_item
    except VendorError:
        for ready_item in guard.salvage():
            yield ready_item
        raise


class Guard:
    """Decides when items are passed on, without I/O. `now_s` is the arrival time of an item.

    `factor`: the minimum speed, as seconds of audio per second. If `remaining` has no other strategy, slow audio is
    not rejected and passes as soon as it is audible. A text without letters and digits may be silent.
    """

    def __init__(self, vendor: str, text: str, *, factor: float, remaining: RemainingAttempts) -> None:
        self.decided = False
        """Whether the decision has been made. All further items are passed on without `feed`."""
        self._vendor = vendor
        self._may_be_silent = not any(letter.isalnum() for letter in text)
        self._factor = factor
        self._remaining = remaining
        self._held: list[SpeechItem] = []
        self._held_bytes = 0
        self._released = False
        self._sound: _Sound | None = None
        self._first: tuple[float, float] | None = None
        """Arrival time and length in milliseconds of the first audio."""

    def feed(self, item: SpeechItem, now_s: float) -> Sequence[SpeechItem]:
        """Add an item and return the items to pass on now. Raise `VendorError` to reject the speech."""
        self._held.append(item)
        if isinstance(item, SpeechFormat):
            self._sound = _Mp3Sound() if item.mime_type == "audio/mpeg" else _PcmSound(item.sample_rate)
        elif isinstance(item, AudioBytes) and item.audio and self._sound is not None:
            self._held_bytes += len(item.audio)
            self._add_audio(self._sound, item.audio, now_s)
        return self._take_held() if self._released else ()

    def end(self) -> Sequence[SpeechItem]:
        """Return the items to pass on at the end. Raise `Empty` if there was no audible audio."""
        if self._sound is not None and self._held_bytes and not self._released:
            self._sound.end()
            if not self._sound.length_ms:
                raise Empty(self._vendor, "sent no audio")
            if not self._sound.audible and not self._may_be_silent:
                raise self._silent()
        return self._take_held()

    def salvage(self) -> Sequence[SpeechItem]:
        """Return the held items that are valid for a failed synthesis too: its usage."""
        return [item for item in self._take_held() if isinstance(item, Usage)]

    def _add_audio(self, sound: "_Sound", audio: bytes, now_s: float) -> None:
        length_before_ms = sound.length_ms
        sound.feed(audio)
        if self._first is None:
            self._first = now_s, sound.length_ms
        if not self._released:
            self._check_sound(sound)
        if sound.length_ms >= WINDOW_MS and (self._released or sound.audible or self._may_be_silent):
            self._check_speed(sound, now_s, last_ms=sound.length_ms - length_before_ms)

    def _check_sound(self, sound: "_Sound") -> None:
        alone = self._remaining.alone
        if sound.audible or (self._may_be_silent and sound.length_ms):
            self._released = alone
        elif sound.length_ms >= (_MAX_SILENCE_MS if alone else WINDOW_MS):
            raise self._silent()
        elif self._held_bytes > _MAX_HELD_BYTES:
            raise Garbled(self._vendor, "sent no audio that can be played")

    def _check_speed(self, sound: "_Sound", now_s: float, *, last_ms: float) -> None:
        """Judge the speed between the first and the last piece of audio.

        The shorter of these two pieces is not counted, because one of them was synthesized outside the measured
        time.
        """
        assert self._first is not None, "there is no audio yet"
        first_s, first_ms = self._first
        made_ms, took_ms = sound.length_ms - min(first_ms, last_ms), (now_s - first_s) * 1000
        self.decided = True
        if made_ms < self._factor * took_ms:
            if not self._released:
                reason = f"sent its audio at {made_ms / took_ms:.2f} times the playback speed"
                raise TooSlow(self._vendor, reason, retryable=True)
            SLOW.labels(self._vendor).inc()
        self._released = True

    def _take_held(self) -> Sequence[SpeechItem]:
        held, self._held = self._held, []
        return held

    def _silent(self) -> Empty:
        return Empty(self._vendor, "sent only silence")


class _Sound(Protocol):
    """Measures the audio so far: its length, and whether any of it is audible."""

    audible: bool

    @property
    def length_ms(self) -> float: ...

    def feed(self, audio: bytes) -> None: ...

    def end(self) -> None: ...


class _Mp3Sound:
    """MP3. Only complete frames are checked for sound, but an incomplete one counts for the length."""

    def __init__(self) -> None:
        self.audible = False
        self._joiner = Mp3Joiner()

    @property
    def length_ms(self) -> float:
        return self._joiner.duration_ms + self._joiner.held_ms

    def feed(self, audio: bytes) -> None:
        self._check_sound(self._joiner.feed(audio))

    def end(self) -> None:
        self._check_sound(self._joiner.end())

    def _check_sound(self, frames: bytes) -> None:
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

    def feed(self, audio: bytes) -> None:
        pcm = self._samples.feed(audio)
        self._bytes += len(pcm)
        if not self.audible:
            samples = array("h", pcm)
            self.audible = any(
                _is_audible(samples[start : start + _CHECKED_SAMPLES])
                for start in range(0, len(samples), _CHECKED_SAMPLES)
            )

    def end(self) -> None:
        """Do nothing: half a sample is not audible."""


def _is_audible(samples: "array[int]") -> bool:
    """Compare the range of the samples, so that a DC offset does not count."""
    return max(samples) - min(samples) > 2 * _MAX_SILENT_AMPLITUDE
