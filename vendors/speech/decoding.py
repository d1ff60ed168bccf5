"""Decodes audio files to samples with FFmpeg's libraries. The package `av` is installed with the local engines."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from streams.audio.audio import pcm_seconds
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


class Undecodable(ValueError):
    """The file cannot be decoded. The message says why, as the rest of a sentence about the audio."""


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

    file, options = io.BytesIO(audio), {"codec_whitelist": ",".join(_CODECS)}
    try:
        with av.open(file, format=_DEMUXERS[mime_type], options=options, metadata_errors="ignore") as container:
            if not container.streams.audio:
                raise Undecodable("has no sound")
            stream = container.streams.audio[0]
            if stream.codec_context.name not in _CODECS:
                raise Undecodable("has a codec that this server cannot decode")
            yield from _resampled(container, stream)
    except av.error.FFmpegError:
        raise Undecodable("is damaged") from None


def _resampled(container: Any, stream: Any) -> Iterator[bytes]:
    """Yield the samples of each packet. Broken frames are skipped, unless all are broken."""
    import av  # noqa: PLC0415 - an extra

    resampler = av.AudioResampler("s16", "mono", SAMPLE_RATE)
    broken = intact = 0
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
            intact += 1
        except av.error.InvalidDataError:
            frames = []
            broken += 1
        for frame in frames:
            frame.pts = None  # The resampler rejects invalid timestamps.
        resampled = [samples for frame in frames for samples in resampler.resample(frame)]
        yield b"".join(_samples(frame) for frame in resampled)
    if broken and intact <= 1:  # The last packet is empty. It flushes the decoder.
        raise Undecodable("is damaged")
    yield b"".join(_samples(frame) for frame in resampler.resample(None))


def _samples(frame: Any) -> bytes:
    return bytes(frame.planes[0])[: 2 * frame.samples]
