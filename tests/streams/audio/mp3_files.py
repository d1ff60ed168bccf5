"""MP3 files as encoders and tagging tools write them."""

import io
import math
from array import array
from fractions import Fraction
from functools import cache

import av
import lameenc


@cache
def tone(*, seconds: float, sample_rate: int, hertz: float = 440) -> bytes:
    count = int(seconds * sample_rate)
    step = 2 * math.pi * hertz / sample_rate
    return array("h", (int(8000 * math.sin(step * n)) for n in range(count))).tobytes()


@cache
def plain_mp3(*, seconds: float = 0.5, sample_rate: int = 24_000, kbps: int = 48) -> bytes:
    """Return an MP3 that consists only of frames."""
    encoder = lameenc.Encoder()
    encoder.set_bit_rate(kbps)
    encoder.set_in_sample_rate(sample_rate)
    encoder.set_out_sample_rate(sample_rate)
    encoder.set_channels(1)
    encoder.set_quality(7)
    pcm = tone(seconds=seconds, sample_rate=sample_rate)
    return bytes(encoder.encode(pcm)) + bytes(encoder.flush())


@cache
def tagged_mp3(*, seconds: float = 0.5, sample_rate: int = 24_000) -> bytes:
    """Return the MP3 with an ID3v2 tag and an info frame before it, and an ID3v1 tag after it."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp3", options={"write_id3v1": "1", "id3v2_version": "3"}) as container:
        container.metadata["title"] = "A sentence"
        stream = container.add_stream("libmp3lame", rate=sample_rate, layout="mono", format="s16p")
        pcm = array("h", tone(seconds=seconds, sample_rate=sample_rate))
        for start in range(0, len(pcm), 576):
            piece = pcm[start : start + 576]
            frame = av.AudioFrame(format="s16p", layout="mono", samples=len(piece))
            frame.planes[0].update(piece.tobytes().ljust(frame.planes[0].buffer_size, b"\0"))
            frame.sample_rate, frame.pts, frame.time_base = sample_rate, start, Fraction(1, sample_rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return file.getvalue()


def played_ms(mp3: bytes) -> float:
    """Return the duration according to a real decoder, which fails on invalid bytes."""
    with av.open(io.BytesIO(mp3), format="mp3") as container:
        frames = list(container.decode(audio=0))
    return sum(frame.samples for frame in frames) * 1000 / frames[0].sample_rate
