"""The audio of an input: its format, its duration, and its conversion for recognizers that need another format."""

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager

from streams.audio.audio import WAV_HEAD_BYTES, implausible, parse_wav, pcm_seconds
from streams.audio.codec import PCM_16, STEREO, codec_of
from streams.audio.durations import duration_s
from streams.audio.formats import SNIFF_BYTES, identify
from streams.audio.framing import Identified
from streams.audio.signatures import FOREIGN, NAMES, WAV
from streams.audio.wav_samples import WavSamples
from streams.input_buffer import InputBuffer
from streams.wire.errors import InvalidParameter
from vendors.errors import Refused
from vendors.protocols import AcceptedAudio, AudioFormat, Recognizer, Transcript
from vendors.speech.conversion import AudioConverter, NotConverted
from vendors.speech.decoding import FoundSound

PCM_RATE = 16_000
PCM = AudioFormat("audio/pcm", PCM_RATE)


class InputAudio:
    """The audio as it arrives. It is converted at most once, and only if a recognizer requires that."""

    def __init__(self, buffer: InputBuffer, audio_format: AudioFormat, converter: AudioConverter) -> None:
        self.buffer = buffer
        self.format = audio_format
        self._converter = converter
        self._converting = asyncio.Lock()
        self._converted: tuple[InputBuffer, AudioFormat] | None = None
        self._file_s: float | None = None
        self._is_measured = False

    @classmethod
    async def begun(cls, buffer: InputBuffer, converter: AudioConverter) -> "InputAudio":
        """Wait until the format is known. Raises `InvalidParameter` if there is no audio."""
        head = await buffer.head(SNIFF_BYTES)
        if not head:
            raise InvalidParameter("audio is required")
        found = identify(head)
        if found is None:
            return cls(buffer, PCM, converter)
        # Only PCM and WAV are passed on while they arrive, so that other files can be examined as a whole.
        if found == Identified(WAV, 0):
            head = await _wav_head(buffer)
            _check_wav(head)
        else:
            head = await buffer.whole()
            found = identify(head) or found
        if found.begin:  # Recognizers may not know it by its content if the rest of a frame is before it.
            head = head[found.begin :]
            buffer = _buffer_of(head)
        return cls(buffer, AudioFormat(found.mime_type, 0, codec_of(head, found.mime_type)), converter)

    async def accepted_by(self, recognizers: Sequence[Recognizer]) -> "InputAudio":
        """Return this audio if a recognizer accepts its format, else as PCM.

        Raises `InvalidParameter` if it cannot be converted. No recognizer has been asked then.
        """
        if not recognizers or any(recognizer.accepted.accepts(self.format) for recognizer in recognizers):
            return self
        if not self._converter.converts(self.format):
            raise self._refused([recognizer.accepted for recognizer in recognizers])
        with self._reported():
            buffer, pcm = await self._as_pcm()
        return InputAudio(buffer, pcm, self._converter)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Report what is wrong with the audio as an error of the input."""
        try:
            yield
        except NotConverted as error:
            raise InvalidParameter(f"audio is {self.format}, which {error}") from None

    @property
    def _is_pcm(self) -> bool:
        return self.format.mime_type == PCM.mime_type

    @property
    def has_plain_samples(self) -> bool:
        """Whether these are 16-bit samples, which can be read while they arrive."""
        return self._is_pcm or (self.format.mime_type == WAV and self.format.codec in {PCM_16, STEREO})

    async def samples(self) -> AsyncGenerator[tuple[int, bytes]]:
        """Yield plain samples as they arrive, each piece with their number of bytes per second."""
        wav = WavSamples() if self.format.mime_type == WAV else None
        per_second = 2 * self.format.sample_rate
        async with aclosing(self.buffer.read()) as pieces:
            async for piece in pieces:
                samples = piece if wav is None else wav.feed(piece)
                if wav is not None and wav.format is not None:
                    per_second = 2 * wav.format.channels * wav.format.sample_rate
                if samples:
                    yield per_second, samples

    async def find_sound(self, *, min_s: float) -> FoundSound | None:
        """Look for sound in a complete file. Returns `None` if its codec is not decoded here.

        Raises `InvalidParameter` if it is damaged.
        """
        seconds = await self._measured()
        if seconds is not None and seconds < min_s:
            return FoundSound(seconds, is_audible=False)
        audio = await self.buffer.whole()
        with self._reported():
            return await self._converter.find_sound(audio, self.format.mime_type, min_s=min_s)

    def streams_to(self, recognizer: Recognizer) -> bool:
        """Return whether the audio is sent to this recognizer while it arrives."""
        return recognizer.accepted.accepts(self.format) and recognizer.streams(self.format)

    @asynccontextmanager
    async def transcribed(self, recognizer: Recognizer, vendor: str) -> AsyncIterator[AsyncIterator[Transcript]]:
        """Pass the audio to a recognizer, as PCM if it does not accept the format or the duration of the file."""
        buffer, audio_format = self.buffer, self.format
        seconds = 0 if self.streams_to(recognizer) else await self._measured()
        if not recognizer.accepted.accepts(audio_format, seconds):
            buffer, audio_format = await self._converted_for(recognizer, vendor)
        async with recognizer.transcribe(buffer, audio_format) as transcripts:
            yield transcripts

    async def half_s(self) -> float:
        """Wait for the end of the input and return half of its duration."""
        await self._measured()
        return self._seconds() / 2

    async def _measured(self) -> float | None:
        """Wait for the end of the input and return its duration, or `None` if the file does not state it."""
        await self.buffer.completed()
        if self._is_pcm:
            return self._seconds()
        if not self._is_measured:
            audio = await self.buffer.whole()
            # Use a thread, because MP3 and others must be read frame by frame.
            self._file_s = await asyncio.to_thread(duration_s, audio, self.format.mime_type)
            self._is_measured = True
        return self._file_s

    def seconds_so_far(self) -> int:
        """Return the duration so far, rounded up to full seconds as vendors bill it.

        For PCM it is known at any time, for other formats once the input is complete.
        """
        return math.ceil(self._seconds())

    def _seconds(self) -> float:
        if self._is_pcm:
            return pcm_seconds(len(self.buffer), self.format.sample_rate)
        return self._file_s or 0.0

    async def _converted_for(self, recognizer: Recognizer, vendor: str) -> tuple[InputBuffer, AudioFormat]:
        too_long = recognizer.accepted.accepts(self.format)
        length = "unknown length" if self._file_s is None else f"more than {recognizer.accepted.max_file_s:.0f} s"
        problem = f"does not accept {self.format}{f' of {length}' if too_long else ''}"
        if not self._converter.converts(self.format):
            raise Refused(vendor, f"{problem}, and this server cannot convert it")
        try:
            return await self._as_pcm()
        except NotConverted as error:
            raise Refused(vendor, f"{problem}, and this audio {error}") from None

    async def _as_pcm(self) -> tuple[InputBuffer, AudioFormat]:
        async with self._converting:
            if self._converted is None:
                samples, rate = await self._converter.as_pcm(await self.buffer.whole(), self.format)
                self._converted = _buffer_of(samples), AudioFormat(PCM.mime_type, rate)
                self._file_s, self._is_measured = pcm_seconds(len(samples), rate), True
            return self._converted

    def _refused(self, accepted: Sequence[AcceptedAudio]) -> InvalidParameter:
        types = {mime_type: codecs for one in accepted for mime_type, codecs in one.types.items()}
        types |= dict.fromkeys(self._converter.types)
        known = [mime_type for mime_type in NAMES if mime_type in types]
        listed = [
            str(AudioFormat(mime_type, 0, " or ".join(sorted(types[mime_type] or ())))) for mime_type in known
        ]
        cause = "" if self.format.mime_type in FOREIGN else ", which this server cannot convert"
        return InvalidParameter(f"audio is {self.format}{cause}: send {', '.join(listed[:-1])} or {listed[-1]}")


def _buffer_of(audio: bytes) -> InputBuffer:
    buffer = InputBuffer()
    buffer.write(audio)
    buffer.end()
    return buffer


def _check_wav(head: bytes) -> None:
    """Raise `InvalidParameter` if the header cannot be true. Samples are passed on while they arrive."""
    try:
        wav = parse_wav(head)
    except ValueError:
        return
    if wav is not None and (problem := implausible(wav.sample_rate, wav.channels)):
        raise InvalidParameter(f"audio is WAV, which {problem}")


async def _wav_head(buffer: InputBuffer) -> bytes:
    """Wait for the header of a WAV file, and return the beginning of the file with it."""
    size = SNIFF_BYTES
    while True:
        head = await buffer.head(size)
        try:
            is_known = parse_wav(head) is not None
        except ValueError:
            return head
        if is_known or len(head) < size or size >= WAV_HEAD_BYTES:
            return head
        size = min(2 * size, WAV_HEAD_BYTES)
