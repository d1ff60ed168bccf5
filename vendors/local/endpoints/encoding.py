"""Incremental encoders for speech: MP3, WAV and raw PCM."""

from typing import Protocol

from streams.audio.audio import wav_header

_MP3_KBPS = 64
_MP3_QUALITY = 5
_MP3_DELAY_SAMPLES = 1105
"""The delay of LAME and the decoder before the first sample. There is no tag that lets players skip it."""


class Encoder(Protocol):
    media_type: str
    delay_ms: int
    """The delay of the encoded audio relative to the PCM."""

    def encode(self, pcm: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


class Pcm:
    """Raw 16-bit mono samples."""

    media_type = "audio/pcm"
    delay_ms = 0

    def __init__(self, sample_rate: int) -> None:
        self._head = b""

    def encode(self, pcm: bytes) -> bytes:
        head, self._head = self._head, b""
        return head + pcm

    def finish(self) -> bytes:
        return self.encode(b"")


class Wav(Pcm):
    """The samples after a WAV header for an unknown length."""

    media_type = "audio/wav"

    def __init__(self, sample_rate: int) -> None:
        super().__init__(sample_rate)
        self._head = wav_header(sample_rate)


class Mp3:
    media_type = "audio/mpeg"

    def __init__(self, sample_rate: int) -> None:
        import lameenc  # noqa: PLC0415 - an extra

        self.delay_ms = _MP3_DELAY_SAMPLES * 1000 // sample_rate
        self._started = False
        self._lame = lameenc.Encoder()
        self._lame.set_bit_rate(_MP3_KBPS)
        self._lame.set_in_sample_rate(sample_rate)
        self._lame.set_channels(1)
        self._lame.set_quality(_MP3_QUALITY)
        self._lame.silence()

    def encode(self, pcm: bytes) -> bytes:
        self._started = True
        return bytes(self._lame.encode(pcm))

    def finish(self) -> bytes:
        return bytes(self._lame.flush()) if self._started else b""


ENCODERS: dict[str, type[Mp3 | Wav | Pcm]] = {"mp3": Mp3, "wav": Wav, "pcm": Pcm}
