"""The duration of a file is read from its headers."""

import io
from array import array
from collections.abc import Callable
from fractions import Fraction

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.audio.audio import wav_header
from streams.audio.durations import duration_s
from tests.streams.audio.mp3_files import plain_mp3, tagged_mp3, tone
from tests.streams.audio.phone_files import amr_wb, phone_file, unsized_flac


def encoded(container_format: str, codec: str, *, seconds: float, rate: int) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=container_format) as container:
        stream = container.add_stream(codec, rate=rate, layout="mono", format="s16")
        size = stream.codec_context.frame_size or 960
        pcm = array("h", tone(seconds=seconds, sample_rate=rate))
        for start in range(0, len(pcm), size):
            piece = pcm[start : start + size]
            frame = av.AudioFrame(format="s16", layout="mono", samples=len(piece))
            frame.planes[0].update(piece.tobytes().ljust(frame.planes[0].buffer_size, b"\0"))
            frame.sample_rate, frame.pts, frame.time_base = rate, start, Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def pcm() -> bytes:
    return tone(seconds=1.5, sample_rate=16_000)


@pytest.mark.parametrize(
    ("made", "mime_type", "seconds"),
    [
        (lambda: wav_header(16_000, data_bytes=len(pcm())) + pcm(), "audio/wav", 1.5),
        (lambda: wav_header(16_000) + pcm(), "audio/wav", 1.5),
        (lambda: wav_header(16_000, data_bytes=10**8) + pcm(), "audio/wav", 1.5),
        (lambda: wav_header(8_000, channels=2, data_bytes=len(pcm())) + pcm(), "audio/wav", 1.5),
        (lambda: encoded("ogg", "libopus", seconds=1.5, rate=48_000), "audio/ogg", 1.5),
        (lambda: encoded("flac", "flac", seconds=1.5, rate=16_000), "audio/flac", 1.5),
        (lambda: plain_mp3(seconds=1.5), "audio/mpeg", 1.5),
        (lambda: tagged_mp3(seconds=1.5), "audio/mpeg", 1.5),
        (lambda: phone_file("amr", seconds=1.5), "audio/amr", 1.5),
        (lambda: phone_file("webm", seconds=1.5), "audio/webm", 1.5),
        (lambda: phone_file("webm", seconds=1.5) * 2, "audio/webm", 3),
        (lambda: phone_file("webm", seconds=1.5)[:300], "audio/webm", 0),
        (lambda: phone_file("opus", seconds=1.5) * 2, "audio/ogg", 3),
        (lambda: phone_file("opus", seconds=1.5)[:100], "audio/ogg", 0),
        (lambda: phone_file("ogg_flac", seconds=1.5), "audio/ogg", 1.5),
        (lambda: phone_file("m4a", seconds=1.5), "audio/mp4", 1.5),
        (lambda: amr_wb(seconds=1.5) + b"\x7c" * 25, "audio/amr-wb", 2),
    ],
)
def test_duration_counts_only_audio_that_plays(made: Callable[[], bytes], mime_type: str, seconds: float) -> None:
    assert duration_s(made(), mime_type) == pytest.approx(seconds, abs=0.11)


@pytest.mark.parametrize(
    ("audio", "mime_type"),
    [
        (b"RIFF", "audio/wav"),
        (b"junk" * 20, "audio/wav"),
        (b"fLaC", "audio/flac"),
        (unsized_flac(), "audio/flac"),
        (b"\0" * 64, "audio/mp4"),
        (phone_file("fragmented"), "audio/mp4"),
        (phone_file("webm") + bytes(64), "audio/webm"),
    ],
)
def test_files_without_a_duration_have_none(audio: bytes, mime_type: str) -> None:
    assert duration_s(audio, mime_type) is None


@given(st.sampled_from(["webm", "opus", "m4a", "fragmented"]), st.data())
def test_damaged_files_do_not_raise(name: str, data: st.DataObject) -> None:
    audio = bytearray(phone_file(name))
    for at in data.draw(st.lists(st.integers(min_value=0, max_value=len(audio) - 1), max_size=8)):
        audio[at] = data.draw(st.integers(min_value=0, max_value=255))
    damaged = bytes(audio[: data.draw(st.integers(min_value=0, max_value=len(audio)))])

    for mime_type in ("audio/webm", "audio/ogg", "audio/mp4"):
        assert (duration_s(damaged, mime_type) or 0) >= 0
