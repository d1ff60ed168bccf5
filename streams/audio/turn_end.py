"""Decides where a spoken turn ends, from the probability of speech in each frame of its audio.

Performs no I/O and reads no clock: positions are counted in samples, so that the result does not depend on how the
audio was split, or on how fast it arrived.
"""

from streams.wire.errors import InvalidParameter

SAMPLE_RATE = 16_000
FRAME_SAMPLES = 512
"""The model judges frames of 32 ms."""
MAX_UNSPOKEN_S = 10
"""A turn in which nothing has been said for this long fails."""
DEFAULT_SILENCE_MS = 700
MIN_SILENCE_MS, MAX_SILENCE_MS = 200, 5_000

_SPEECH, _STILL_SPEECH = 0.5, 0.35
"""From these probabilities on, a frame is speech, and continues speech. They are the defaults of Silero."""
_WORD_FRAMES = 4
"""Speech has begun after this many frames of speech: 128 ms. A short "yes" has more, a click has fewer."""
_GAP_FRAMES = 4
"""Frames of speech with longer gaps between them are not added up until speech has begun."""


class TurnEnd:
    """The end of one turn. `at_ms` is where speech ended, or `None` as long as the turn goes on."""

    __slots__ = (
        "_begun",
        "_frames",
        "_last_speech",
        "_max_samples",
        "_run",
        "_silence_samples",
        "_speaks",
        "at_ms",
    )

    def __init__(self, *, silence_ms: int = DEFAULT_SILENCE_MS, max_s: float | None = None) -> None:
        self.at_ms: int | None = None
        self._silence_samples = silence_ms * SAMPLE_RATE // 1000
        self._max_samples = None if max_s is None else round(max_s * SAMPLE_RATE)
        self._frames = 0
        self._last_speech = 0
        """The number of frames up to the end of the last one that is speech."""
        self._run = 0
        """Frames of speech before speech has begun."""
        self._speaks = False
        self._begun = False

    def add(self, probability: float) -> int | None:
        """Add the next frame. Return the number of samples in the turn if it ends with this frame.

        Raises `InvalidParameter` if nothing was said in the first `MAX_UNSPOKEN_S`, or before the maximum duration.
        """
        self._frames += 1
        self._speaks = probability >= (_STILL_SPEECH if self._speaks else _SPEECH)
        if self._speaks:
            self._count_speech()
        samples = self._frames * FRAME_SAMPLES
        silence = samples - self._last_speech * FRAME_SAMPLES
        if self._begun and silence >= self._silence_samples:
            return self._end(samples, self._last_speech * FRAME_SAMPLES)
        if self._max_samples is not None and samples >= self._max_samples:
            return self._end(self._max_samples, self._max_samples)
        if not self._begun and not self._speaks and samples >= MAX_UNSPOKEN_S * SAMPLE_RATE:
            raise InvalidParameter("no speech was heard")
        return None

    def _count_speech(self) -> None:
        is_new = self._frames - self._last_speech > _GAP_FRAMES
        self._run = 1 if is_new else self._run + 1
        self._last_speech = self._frames
        self._begun = self._begun or self._run >= _WORD_FRAMES

    def _end(self, samples: int, speech_samples: int) -> int:
        """End the turn after `samples`. If silence has ended it, speech has ended before them."""
        if not self._begun:
            raise InvalidParameter("no speech was heard")
        self.at_ms = min(speech_samples, samples) * 1000 // SAMPLE_RATE
        return samples
