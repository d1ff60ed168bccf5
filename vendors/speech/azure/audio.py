"""Prepares audio for vendor A's recognition: PCM with a WAV header, in messages of limited size and rate."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from streams.audio.audio import PCM, wav_header
from streams.audio.wav_samples import WavSamples
from vendors.errors import Refused
from vendors.protocols import AudioFormat, AudioInput
from vendors.speech.azure.frames import TICKS_PER_MS

PIECE_BYTES = 6400
"""Keeps a message with its header below the limit of 8,192 bytes."""
_AHEAD_S = 5.0
_SPEED = 2.0
_TICKS_PER_S = 1000 * TICKS_PER_MS
_BITS = 16


@dataclass(frozen=True, slots=True)
class PcmFormat:
    """The format of 16-bit PCM audio."""

    sample_rate: int
    channels: int = 1

    @property
    def frame_bytes(self) -> int:
        return self.channels * _BITS // 8

    @property
    def bytes_per_s(self) -> int:
        return self.sample_rate * self.frame_bytes

    def header(self) -> bytes:
        """Return a WAV header for a stream of unknown length, for which the vendor requires sizes of zero."""
        header = wav_header(self.sample_rate, channels=self.channels, data_bytes=0)
        return header[:4] + bytes(4) + header[8:]

    def offset(self, ticks: int) -> int:
        """Return the byte offset of the sample at `ticks`."""
        return ticks * self.sample_rate // _TICKS_PER_S * self.frame_bytes

    def ticks(self, offset: int) -> int:
        return offset // self.frame_bytes * _TICKS_PER_S // self.sample_rate


async def read_pcm(
    vendor: str, audio: AudioInput, audio_format: AudioFormat
) -> AsyncGenerator[tuple[PcmFormat, bytes]]:
    """Yield the samples as they arrive, each piece with its format, without the rest of a WAV file."""
    pcm = PcmFormat(audio_format.sample_rate)
    wav = WavSamples() if audio_format.mime_type == "audio/wav" else None
    async with aclosing(audio.read()) as pieces:
        async for piece in pieces:
            samples = piece
            if wav is not None:
                samples = _wav_samples(vendor, wav, piece)
                if wav.format is None:
                    continue
                pcm = PcmFormat(wav.format.sample_rate, wav.format.channels)
            yield pcm, samples


def _wav_samples(vendor: str, wav: WavSamples, piece: bytes) -> bytes:
    try:
        samples = wav.feed(piece)
    except ValueError as error:
        raise Refused(vendor, f"does not accept this WAV file: {error}") from None
    known = wav.format
    if known and (known.format_tag != PCM or known.bits != _BITS or not known.channels or not known.sample_rate):
        raise Refused(vendor, "only accepts WAV files with 16-bit PCM")
    return samples


class Chunker:
    """Splits audio into messages of complete samples, without the first `skip` bytes."""

    def __init__(self, skip: int = 0) -> None:
        self._skip = skip
        self._held = bytearray()

    def feed(self, pcm: PcmFormat, piece: bytes) -> list[bytes]:
        skipped = min(self._skip, len(piece))
        self._skip -= skipped
        self._held += memoryview(piece)[skipped:]
        size = len(self._held) // pcm.frame_bytes * pcm.frame_bytes
        ready, self._held = bytes(self._held[:size]), self._held[size:]
        step = PIECE_BYTES // pcm.frame_bytes * pcm.frame_bytes
        return [ready[at : at + step] for at in range(0, size, step)]


def send_delay_s(sent_s: float, elapsed_s: float) -> float:
    """Return the delay before more audio is sent.

    Five seconds of audio are sent immediately, the rest at twice the playback speed.
    """
    return max(0.0, (sent_s - _AHEAD_S) / _SPEED - elapsed_s)
