"""Short recordings in the formats of phones and browsers, encoded when they are needed."""

import io
import struct
from array import array
from functools import cache

import av

from streams.audio.audio import wav_header
from tests.streams.audio.mp3_files import tone

RATE = 16_000

_ENCODERS = {
    "aac": ("adts", "aac", 44_100, {}),
    "amr": ("amr", "libopencore_amrnb", 8_000, {}),
    "caf": ("caf", "alac", 44_100, {}),
    "caf_pcm": ("caf", "pcm_s16be", 16_000, {}),
    "aiff": ("aiff", "pcm_s16be", 44_100, {}),
    "rf64": ("wav", "pcm_s16le", 16_000, {"rf64": "always"}),
    "wma": ("asf", "wmav2", 44_100, {}),
    "m4a": ("ipod", "aac", 44_100, {}),
    "fragmented": ("mp4", "aac", 48_000, {"movflags": "empty_moov+default_base_moof+frag_every_frame"}),
    "opus": ("ogg", "libopus", 48_000, {}),
    "ogg_flac": ("ogg", "flac", 16_000, {}),
    "webm": ("webm", "libopus", 48_000, {}),
    "flac": ("flac", "flac", 16_000, {}),
    "adpcm": ("wav", "adpcm_ima_wav", 16_000, {}),
    "latm": ("latm", "aac", 44_100, {}),
    "mpegts": ("mpegts", "aac", 44_100, {}),
    "mov": ("mov", "pcm_s16be", 16_000, {}),
    "au": ("au", "pcm_s16be", 16_000, {}),
    "w64": ("w64", "pcm_s16le", 16_000, {}),
    "voc": ("voc", "pcm_s16le", 16_000, {}),
    "wavpack": ("wv", "wavpack", 16_000, {}),
    "mp2": ("mp2", "mp2", 44_100, {}),
    "ac3": ("ac3", "ac3", 48_000, {}),
    "eac3": ("eac3", "eac3", 48_000, {}),
    "mpegps": ("mpeg", "mp2", 44_100, {}),
    "m2ts": ("mpegts", "aac", 44_100, {"mpegts_m2ts_mode": "1"}),
    "tta": ("tta", "tta", 16_000, {}),
    "sox": ("sox", "pcm_s32le", 16_000, {}),
    "nut": ("nut", "pcm_s16le", 16_000, {}),
    "sbc": ("sbc", "sbc", 16_000, {}),
    "avi": ("avi", "mp2", 44_100, {}),
    "flv": ("flv", "aac", 44_100, {}),
    "ircam": ("ircam", "pcm_s16le", 16_000, {}),
    "spdif": ("spdif", "ac3", 48_000, {}),
    "yamaha": ("wav", "adpcm_yamaha", 16_000, {}),
    "mulaw": ("wav", "pcm_mulaw", 8_000, {}),
    "alaw": ("wav", "pcm_alaw", 8_000, {}),
    "wav_8": ("wav", "pcm_u8", 16_000, {}),
    "wav_24": ("wav", "pcm_s24le", 16_000, {}),
    "wav_float": ("wav", "pcm_f32le", 16_000, {}),
    "stereo_flac": ("flac", "flac", 16_000, {}),
    "mp3": ("mp3", "libmp3lame", 16_000, {}),
}
"""Muxer, encoder, sample rate and options of FFmpeg."""

PHONE_TYPES = {
    "aac": "audio/aac",
    "amr": "audio/amr",
    "caf": "audio/x-caf",
    "aiff": "audio/aiff",
    "rf64": "audio/x-rf64",
    "wma": "audio/x-ms-wma",
    "fragmented": "audio/mp4",
}
RARE_TYPES = {
    "au": "audio/basic",
    "w64": "audio/x-w64",
    "voc": "audio/x-voc",
    "wavpack": "audio/x-wavpack",
    "latm": "audio/mp4a-latm",
    "mpegts": "video/mp2t",
    "mp2": "audio/x-mp2",
    "ac3": "audio/ac3",
    "eac3": "audio/eac3",
    "mpegps": "video/mp2p",
    "m2ts": "video/mp2t",
    "tta": "audio/x-tta",
    "sox": "audio/x-sox",
    "nut": "video/x-nut",
    "sbc": "audio/x-sbc",
    "avi": "video/x-msvideo",
    "flv": "video/x-flv",
    "ircam": "audio/x-ircam",
    "spdif": "audio/x-iec61937",
}
"""What only old or professional devices record. Sandbox vendors accept none of it."""


@cache
def phone_file(name: str, *, seconds: float = 0.5, silent: bool = False) -> bytes:
    """Return a recording of a tone, or of silence."""
    container, codec, rate, options = _ENCODERS[name]
    layout = "stereo" if name.startswith("stereo") else "mono"
    size = 2 * int(seconds * RATE)
    pcm = bytes(size) if silent else tone(seconds=seconds, sample_rate=RATE)
    source_file, target_file = io.BytesIO(wav_header(RATE, data_bytes=size) + pcm), io.BytesIO()
    with (
        av.open(source_file, format="wav") as source,
        av.open(target_file, "w", format=container, options=options) as target,
    ):
        stream = target.add_stream(codec, rate=rate, layout=layout)
        if codec == "wmav2":
            stream.bit_rate = 64_000  # Its default is too low for any sample rate.
        if codec == "mp2":
            stream.bit_rate = 192_000  # Its default is that of studios.
        if codec == "sbc":
            stream.bit_rate = 128_000  # Its default exceeds the limits of SBC.
        if codec == "libopus":
            stream.options = {"compression_level": "0"}  # Ten times as fast.
        resampler = av.AudioResampler(stream.format, layout, rate, frame_size=stream.frame_size or None)
        for frame in [*source.decode(audio=0), None]:
            for piece in resampler.resample(frame):
                target.mux(stream.encode(piece))
        target.mux(stream.encode(None))
    return target_file.getvalue()


def stereo_wav(*, rate: int, seconds: float = 0.5) -> bytes:
    """Return WAV of 16-bit PCM with a tone in the second channel and silence in the first one."""
    left = array("h", bytes(2 * int(seconds * rate)))
    right = array("h", tone(seconds=seconds, sample_rate=rate))
    samples = array("h", (sample for frame in zip(left, right, strict=True) for sample in frame)).tobytes()
    return wav_header(rate, channels=2, data_bytes=len(samples)) + samples


def behind_a_box(mp4: bytes) -> bytes:
    """Insert 2 KB of padding between the first two boxes, as muxers do that fill in the index later."""
    size = int.from_bytes(mp4[:4])
    return mp4[:size] + struct.pack(">I4s", 2_008, b"free") + bytes(2_000) + mp4[size:]


def unsized_flac(*, seconds: float = 0.5) -> bytes:
    """Return FLAC that was written while it was recorded, so that its header does not state its length."""
    flac = bytearray(phone_file("flac", seconds=seconds))
    flac[21] &= 0xF0
    flac[22:26] = bytes(4)
    return bytes(flac)


def amr_wb(*, seconds: float = 0.5) -> bytes:
    """Return AMR-WB of frames of the lowest bit rate, whose content is arbitrary."""
    return b"#!AMR-WB\n" + (b"\x04" + bytes(17)) * round(seconds * 50)


def silk(*, marked: bool = False) -> bytes:
    """Return the beginning of SILK, with or without the mark that messengers put before it."""
    return (b"\2" if marked else b"") + b"#!SILK_V3" + b"\x0c\0" + bytes(2_000)
