"""Decodes audio files to samples with FFmpeg's libraries. The package `av` is installed with the local engines."""

import io
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from streams.audio.formats import AAC, AIFF, AMR, AMR_WB, CAF, FLAC, MP3, MP4, OGG, RF64, WAV, WEBM, WMA

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
}
"""FFmpeg's names. FFmpeg's own detection would also open playlists, which can refer to local files."""
DECODABLE_TYPES = frozenset(_DEMUXERS)
"""The MIME types of files that FFmpeg decodes."""
_CODECS = (
    "aac", "aac_latm", "alac", "amrnb", "amrwb", "flac", "mp3", "mp3float", "opus", "libopus", "vorbis",
    "wmav1", "wmav2", "wmapro", "adpcm_ima_wav", "adpcm_ima_qt", "adpcm_ms", "gsm_ms", "pcm_alaw", "pcm_mulaw",
    "pcm_u8", "pcm_s8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_s32be",
    "pcm_f32le", "pcm_f32be", "pcm_f64le", "pcm_f64be",
)  # fmt: skip
"""The codecs that recorders use. FFmpeg has hundreds, which are less tested."""


class Undecodable(ValueError):
    """The file is damaged, has no sound, or has an unusual codec."""


class Stopped(Exception):
    """The caller does not want any more samples."""


def decoded_types() -> frozenset[str]:
    """Return the MIME types of files that can be decoded here: none without the package."""
    return DECODABLE_TYPES if find_spec("av") is not None else frozenset()


def decode(audio: bytes, mime_type: str, *, goes_on: Callable[[int], bool]) -> bytes:
    """Return the sound of a file as 16-bit mono samples at `SAMPLE_RATE`. Broken frames are skipped.

    After each packet, `goes_on` is called with the number of bytes so far. If it returns false, this raises
    `Stopped`.
    """
    import av  # noqa: PLC0415 - an extra

    pcm = bytearray()
    options = {"codec_whitelist": ",".join(_CODECS)}
    try:
        file = io.BytesIO(audio)
        with av.open(file, format=_DEMUXERS[mime_type], options=options, metadata_errors="ignore") as container:
            for piece in _resampled(container):
                pcm += piece
                if not goes_on(len(pcm)):
                    raise Stopped
    except (av.error.FFmpegError, IndexError):
        raise Undecodable from None
    return bytes(pcm)


def _resampled(container: Any) -> Iterator[bytes]:
    """Yield the samples of each packet of the first audio stream. Raise `IndexError` if there is none."""
    import av  # noqa: PLC0415 - an extra

    stream = container.streams.audio[0]
    if stream.codec_context.name not in _CODECS:
        raise Undecodable
    resampler = av.AudioResampler("s16", "mono", SAMPLE_RATE)
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except av.error.InvalidDataError:
            frames = []
        for frame in frames:
            frame.pts = None  # The resampler rejects invalid timestamps.
        resampled = [samples for frame in frames for samples in resampler.resample(frame)]
        yield b"".join(_samples(frame) for frame in resampled)
    yield b"".join(_samples(frame) for frame in resampler.resample(None))


def _samples(frame: Any) -> bytes:
    return bytes(frame.planes[0])[: 2 * frame.samples]
