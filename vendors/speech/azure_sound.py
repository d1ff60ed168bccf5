"""Audio as vendor A's recognisers take it: PCM behind a WAV header, in messages of a size, not too fast."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from streams.audio import PCM, WAV_HEAD_BYTES, WavFormat, parse_wav, wav_header
from vendors.errors import Refused
from vendors.protocols import AudioFormat, AudioInput
from vendors.speech.azure_frames import TICKS_PER_MS

PIECE_BYTES = 6400
"""With its header a message stays below the 8,192 bytes that are allowed."""
_HEADSTART_S = 5.0
_SPEED = 2.0
_TICKS_PER_S = 1000 * TICKS_PER_MS
_BITS = 16


@dataclass(frozen=True, slots=True)
class PcmFormat:
    """16-bit PCM."""

    sample_rate: int
    channels: int = 1

    @property
    def frame_bytes(self) -> int:
        return self.channels * _BITS // 8

    @property
    def bytes_per_s(self) -> int:
        return self.sample_rate * self.frame_bytes

    def header(self) -> bytes:
        """Of a stream of unknown length: the vendor wants zeros for its sizes."""
        header = wav_header(self.sample_rate, channels=self.channels, data_bytes=0)
        return header[:4] + bytes(4) + header[8:]

    def offset(self, ticks: int) -> int:
        """The byte that plays at `ticks`."""
        return ticks * self.sample_rate // _TICKS_PER_S * self.frame_bytes

    def ticks(self, offset: int) -> int:
        return offset // self.frame_bytes * _TICKS_PER_S // self.sample_rate


async def pcm_of(
    vendor: str, audio: AudioInput, audio_format: AudioFormat
) -> AsyncGenerator[tuple[PcmFormat, bytes]]:
    """The samples as they come, each piece with its format; a WAV's header is read and left out."""
    is_wav = audio_format.mime_type == "audio/wav"
    known = None if is_wav else PcmFormat(audio_format.sample_rate)
    head = b""
    async with aclosing(audio.read()) as pieces:
        async for piece in pieces:
            if known is not None:
                yield known, piece
                continue
            head += piece
            wav = _wav(vendor, head)
            if wav is not None:
                known = PcmFormat(wav.sample_rate, wav.channels)
                yield known, head[wav.data_offset :]


def _wav(vendor: str, head: bytes) -> WavFormat | None:
    try:
        wav = parse_wav(head)
    except ValueError as error:
        raise Refused(vendor, f"takes no such WAV: {error}") from None
    if wav is None and len(head) > WAV_HEAD_BYTES:
        raise Refused(vendor, "takes no WAV whose samples begin so late")
    if wav is not None and (wav.format_tag != PCM or wav.bits != _BITS or not wav.channels or not wav.sample_rate):
        raise Refused(vendor, "takes no WAV but of 16-bit PCM")
    return wav


class Pieces:
    """Cuts what comes into messages of whole samples, leaving out the first `skip` bytes."""

    def __init__(self, skip: int = 0) -> None:
        self._skip = skip
        self._held = bytearray()

    def feed(self, pcm: PcmFormat, piece: bytes) -> list[bytes]:
        left_out = min(self._skip, len(piece))
        self._skip -= left_out
        self._held += memoryview(piece)[left_out:]
        whole = len(self._held) // pcm.frame_bytes * pcm.frame_bytes
        ready, self._held = bytes(self._held[:whole]), self._held[whole:]
        step = PIECE_BYTES // pcm.frame_bytes * pcm.frame_bytes
        return [ready[at : at + step] for at in range(0, whole, step)]


def wait_s(sent_s: float, elapsed_s: float) -> float:
    """How long to wait before more is sent: five seconds of audio go at once, then twice as fast as they play."""
    return max(0.0, (sent_s - _HEADSTART_S) / _SPEED - elapsed_s)
