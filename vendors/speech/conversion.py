"""Converts audio that a recognizer does not accept into PCM, in a few threads."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from streams.audio.codec import STEREO
from streams.audio.mono import mono_samples
from streams.audio.signatures import WAV
from streams.wire.errors import Unavailable
from vendors.protocols import AudioFormat
from vendors.speech.decoding import (
    SAMPLE_RATE,
    FoundSound,
    Stopped,
    Undecodable,
    UnsupportedCodec,
    decode,
    decoded_types,
    find_sound,
)

THREADS = 2
MAX_WAITING = 16
"""How many callers wait for a free thread. Further ones are refused."""
MAX_AUDIO_S = 600
"""The maximum length of audio that is converted. An input that is sent as it is recorded has the same limit."""
MAX_ELAPSED_S = 10
"""The time limit for the wait and the conversion together. A minute of AAC takes less than 0.1 s."""

_Result = TypeVar("_Result")
_SEARCHED_S = 60
_MAX_SEARCH_S = 1.0


class ConversionBusy(Unavailable):
    """Too many recordings are being converted at the moment."""

    def __init__(self) -> None:
        super().__init__("too many recordings are being converted, retry later")


class NotConverted(ValueError):
    """The audio cannot be converted. The message says why, as the rest of a sentence about the audio."""


class AudioConverter:
    """Converts files of the MIME types in `types`, which is empty if the package of the decoders is missing."""

    def __init__(self, *, max_audio_s: float = MAX_AUDIO_S, max_elapsed_s: float = MAX_ELAPSED_S) -> None:
        self.types = decoded_types()
        self._max_audio_s = max_audio_s
        self._max_elapsed_s = max_elapsed_s
        self._threads = ThreadPoolExecutor(THREADS, "audio")
        self._free = asyncio.Semaphore(THREADS)
        self._waiting = 0

    async def find_sound(self, audio: bytes, mime_type: str, *, min_s: float) -> FoundSound | None:
        """Decode a file until `min_s` and the first sound have been found.

        Returns `None` if the codec is not decoded here, if no thread is free, or if the first minute is silent.
        Speech begins early, so that this takes 0.2 to 10 ms. A silent minute takes up to 80 ms. Raises
        `NotConverted` if the file is damaged, or without sound of any kind.
        """
        if mime_type not in self.types or self._free.locked():
            return None
        await self._free.acquire()
        limits = _Conversion(_SEARCHED_S, _MAX_SEARCH_S, time.monotonic() + _MAX_SEARCH_S)
        try:
            return await self._run(find_sound, audio, mime_type, limits, min_s=min_s)
        except (UnsupportedCodec, Stopped):
            return None
        except Undecodable as error:
            raise NotConverted(str(error)) from None

    def converts(self, audio_format: AudioFormat) -> bool:
        """Return whether files of this format are converted. Plain samples are mixed without the decoders."""
        return audio_format.mime_type in self.types or _is_plain(audio_format)

    async def as_pcm(self, audio: bytes, audio_format: AudioFormat) -> tuple[bytes, int]:
        """Return 16-bit mono samples and their rate. Raises `NotConverted` and `ConversionBusy`."""
        if audio_format.mime_type in self.types:
            return await self.convert(audio, audio_format.mime_type), SAMPLE_RATE
        return await asyncio.to_thread(mono_samples, audio)

    async def convert(self, audio: bytes, mime_type: str) -> bytes:
        """Return 16-bit mono samples at `SAMPLE_RATE`. Raises `NotConverted` and `ConversionBusy`."""
        deadline = time.monotonic() + self._max_elapsed_s
        await self._wait_for_thread(deadline)
        conversion = _Conversion(self._max_audio_s, self._max_elapsed_s, deadline)
        try:
            return await self._run(decode, audio, mime_type, conversion)
        except Undecodable as error:
            raise NotConverted(str(error)) from None
        except Stopped:
            raise NotConverted(conversion.problem) from None

    async def close(self) -> None:
        """Wait for the threads to finish."""
        for _ in range(THREADS):
            await self._free.acquire()
        self._threads.shutdown()

    async def _run(
        self, work: Callable[..., _Result], audio: bytes, mime_type: str, limits: "_Conversion", **options: float
    ) -> _Result:
        """Call `work` in a thread that has been acquired."""
        loop = asyncio.get_running_loop()
        result = self._threads.submit(work, audio, mime_type, goes_on=limits.goes_on, **options)
        # The thread is free when it has finished, even if the caller is cancelled before.
        result.add_done_callback(lambda _: loop.call_soon_threadsafe(self._free.release))
        try:
            return await asyncio.wrap_future(result)
        finally:
            limits.cancel()

    async def _wait_for_thread(self, deadline: float) -> None:
        if self._free.locked() and self._waiting >= MAX_WAITING:
            raise ConversionBusy
        self._waiting += 1
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                await self._free.acquire()
        except TimeoutError:
            raise ConversionBusy from None
        finally:
            self._waiting -= 1


def _is_plain(audio_format: AudioFormat) -> bool:
    return (audio_format.mime_type, audio_format.codec) == (WAV, STEREO)


class _Conversion:
    """The limits of one conversion, or of one search for sound."""

    def __init__(self, max_audio_s: float, max_elapsed_s: float, deadline: float) -> None:
        self.problem = ""
        self._max_audio_s = max_audio_s
        self._max_elapsed_s = max_elapsed_s
        self._deadline = deadline
        self._is_canceled = threading.Event()

    def cancel(self) -> None:
        self._is_canceled.set()

    def goes_on(self, size: int) -> bool:
        if size > self._max_audio_s * SAMPLE_RATE * 2:
            self.problem = f"is longer than {self._max_audio_s:g} s"
        elif time.monotonic() > self._deadline:
            self.problem = f"takes more than {self._max_elapsed_s:g} s to convert"
        return not self.problem and not self._is_canceled.is_set()


@asynccontextmanager
async def open_audio_converter() -> AsyncIterator[AudioConverter]:
    converter = AudioConverter()
    try:
        yield converter
    finally:
        await converter.close()
