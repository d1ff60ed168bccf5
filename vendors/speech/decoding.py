"""Decodes audio files to samples with FFmpeg's libraries. The package `av` is installed with the local engines."""

import ctypes
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from streams.audio.audio import implausible, pcm_seconds
from streams.audio.pcm import has_sound
from streams.audio.signatures import (
    AAC,
    AC3,
    AIFF,
    AMR,
    AMR_WB,
    APE,
    AU,
    AVI,
    CAF,
    DFF,
    DSF,
    DSS,
    DTS,
    EAC3,
    FLAC,
    FLV,
    IRCAM,
    LATM,
    MP2,
    MP3,
    MP4,
    MPEG_PS,
    MPEG_TS,
    MUSEPACK_7,
    MUSEPACK_8,
    NUT,
    OGG,
    QCP,
    QUICKTIME,
    RF64,
    RIFX,
    SBC,
    SOX,
    SPDIF,
    TTA,
    VOC,
    W64,
    WAV,
    WAVPACK,
    WEBM,
    WMA,
)

SAMPLE_RATE = 16_000
_DEMUXERS = {
    WAV: "wav",
    RF64: "wav",
    OGG: "ogg",
    FLAC: "flac",
    MP3: "mp3",
    MP4: "mov",
    WEBM: "matroska",
    AMR: "amr",
    AMR_WB: "amr",
    AAC: "aac",
    CAF: "caf",
    AIFF: "aiff",
    WMA: "asf",
    AU: "au",
    W64: "w64",
    VOC: "voc",
    WAVPACK: "wv",
    LATM: "loas",
    QCP: "qcp",
    MPEG_TS: "mpegts",
    QUICKTIME: "mov",
    MP2: "mp3",
    AC3: "ac3",
    EAC3: "eac3",
    DTS: "dts",
    MPEG_PS: "mpeg",
    RIFX: "wav",
    APE: "ape",
    TTA: "tta",
    MUSEPACK_7: "mpc",
    MUSEPACK_8: "mpc8",
    DSF: "dsf",
    DFF: "iff",
    DSS: "dss",
    SOX: "sox",
    NUT: "nut",
    SBC: "sbc",
    AVI: "avi",
    FLV: "flv",
    IRCAM: "ircam",
    SPDIF: "spdif",
}
"""FFmpeg's names. FFmpeg's own detection would also open playlists, which can refer to local files."""
DECODABLE_TYPES = frozenset(_DEMUXERS)
"""The MIME types of files that FFmpeg decodes."""
_CODECS = (
    "aac", "aac_latm", "alac", "amrnb", "amrwb", "flac", "mp2", "mp2float", "mp3", "mp3float", "opus", "libopus",
    "vorbis", "ac3", "eac3", "dca", "ape", "tta", "mpc7", "mpc8", "sbc", "dss_sp", "dsd_lsbf", "dsd_msbf",
    "dsd_lsbf_planar", "dsd_msbf_planar",
    "wmav1", "wmav2", "wmapro", "wavpack", "qcelp", "evrc", "adpcm_ima_wav", "adpcm_ima_qt", "adpcm_ms",
    "gsm_ms", "pcm_alaw", "pcm_mulaw", "pcm_u8", "pcm_s8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be",
    "pcm_s32le", "pcm_s32be", "pcm_f32le", "pcm_f32be", "pcm_f64le", "pcm_f64be",
)  # fmt: skip
"""The codecs that recorders use. FFmpeg has hundreds, which are less tested."""
_MAX_ALLOCATED_BYTES = 16 * 1024 * 1024
"""The maximum size of one array of FFmpeg. The index of 4 hours of AAC has this size."""
_MAX_STREAMS = 16
"""Each stream has its own index. Phones write up to 7 streams: sounds, pictures, and data of their sensors."""
_FAULTS = (AttributeError, LookupError, MemoryError, OverflowError, ValueError)
"""What PyAV raises where it does not expect damage, such as `IndexError` for a stream that begins late."""


class Undecodable(ValueError):
    """The file cannot be decoded. The message says why, as the rest of a sentence about the audio."""


class UnsupportedCodec(Undecodable):
    """FFmpeg knows the codec, but it is not decoded here. A recognizer may support it."""


class Stopped(Exception):
    """The caller does not want any more samples."""


def decoded_types() -> frozenset[str]:
    """Return the MIME types of files that can be decoded here: none without the package."""
    return DECODABLE_TYPES if find_spec("av") is not None else frozenset()


@dataclass(frozen=True, slots=True)
class FoundSound:
    """The duration that was decoded, and whether there is sound in it."""

    seconds: float
    is_audible: bool


def decode(audio: bytes, mime_type: str, *, goes_on: Callable[[int], bool]) -> bytes:
    """Return the sound of a file as 16-bit mono samples at `SAMPLE_RATE`. Broken frames are skipped.

    After each packet, `goes_on` is called with the number of bytes so far. If it returns false, this raises
    `Stopped`. Raises `Undecodable`.
    """
    pcm = bytearray()
    for piece in _decoded(audio, mime_type):
        pcm += piece
        if not goes_on(len(pcm)):
            raise Stopped
    return bytes(pcm)


def find_sound(audio: bytes, mime_type: str, *, goes_on: Callable[[int], bool], min_s: float) -> FoundSound:
    """Decode a file until `min_s` and a sound have been found, or to its end. Raises as `decode` does."""
    size, is_audible = 0, False
    for piece in _decoded(audio, mime_type):
        size += len(piece)
        is_audible = is_audible or has_sound(piece)
        if is_audible and size >= min_s * SAMPLE_RATE * 2:
            break
        if not goes_on(size):
            raise Stopped
    return FoundSound(pcm_seconds(size, SAMPLE_RATE), is_audible)


def _decoded(audio: bytes, mime_type: str) -> Iterator[bytes]:
    """Yield the samples of each packet of the first audio stream."""
    import av  # noqa: PLC0415 - an extra

    _limit_memory()
    file = io.BytesIO(audio)
    options = {"codec_whitelist": ",".join(_CODECS), "max_streams": str(_MAX_STREAMS)}
    try:
        with av.open(file, format=_DEMUXERS[mime_type], options=options, metadata_errors="ignore") as container:
            yield from _resampled(container, _checked_stream(container))
    except Undecodable:
        raise
    except (av.error.FFmpegError, *_FAULTS):
        raise Undecodable("is damaged") from None


@cache
def _limit_memory() -> None:
    """Limit each allocation of FFmpeg in this process, as its option `-max_alloc` does.

    Without a limit, an MP4 file of 1 KB whose header claims 100 million samples takes 3.6 GB. PyAV has no function
    for it, but its packages contain the library. Where FFmpeg is the system's, it has no limit.
    """
    import av  # noqa: PLC0415 - an extra

    package = Path(av.__file__).parent
    for folder in (package.with_name("av.libs"), package / ".dylibs"):  # Of Linux, of macOS.
        for library in folder.glob("libavutil*"):
            ctypes.CDLL(str(library)).av_max_alloc(ctypes.c_size_t(_MAX_ALLOCATED_BYTES))


def _checked_stream(container: Any) -> Any:
    """Return the first stream of audio. Raises `Undecodable` before a decoder gets any packet."""
    if not container.streams.audio:
        raise Undecodable("has no sound")
    stream = container.streams.audio[0]
    codec = stream.codec_context
    if codec is None:
        raise Undecodable("has an unknown codec")
    if codec.name not in _CODECS:
        raise UnsupportedCodec("has a codec that this server cannot decode")
    if codec.sample_rate and codec.channels:  # Otherwise, the first frame has them.
        _check_layout(codec.sample_rate, codec.channels)
    return stream


def _check_layout(sample_rate: int, channels: int) -> None:
    if problem := implausible(sample_rate, channels):
        raise Undecodable(problem)


def _resampled(container: Any, stream: Any) -> Iterator[bytes]:
    """Yield the samples of each packet. Broken frames are skipped, unless all are broken."""
    import av  # noqa: PLC0415 - an extra

    resampler = _Resampler()
    broken = intact = 0
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
            intact += 1
        except av.error.FFmpegError:  # Decoders return many codes, also ones that no list has.
            frames = []
            broken += 1
        yield b"".join(map(resampler.feed, frames))
    if broken and intact <= 1:  # The last packet is empty. It flushes the decoder.
        raise Undecodable("is damaged")
    yield resampler.end()


class _Resampler:
    """Converts frames to mono samples at `SAMPLE_RATE`. Joined recordings may change their format in the middle."""

    def __init__(self) -> None:
        self._resampler: Any = None
        self._format: tuple[int, str, str] | None = None

    def feed(self, frame: Any) -> bytes:
        import av  # noqa: PLC0415 - an extra

        # Setting up for 805,306,368 Hz takes 17 s and 869 MB, and no other thread runs meanwhile.
        _check_layout(frame.sample_rate, frame.layout.nb_channels)
        rest = b""
        found = frame.sample_rate, frame.layout.name, frame.format.name
        if found != self._format:
            rest = self.end()
            self._resampler, self._format = av.AudioResampler("s16", "mono", SAMPLE_RATE), found
        frame.pts = None  # The resampler rejects invalid timestamps.
        return rest + self._resample(frame)

    def end(self) -> bytes:
        """Return the samples that are held back."""
        return b"" if self._resampler is None else self._resample(None)

    def _resample(self, frame: Any) -> bytes:
        return b"".join(bytes(made.planes[0])[: 2 * made.samples] for made in self._resampler.resample(frame))
