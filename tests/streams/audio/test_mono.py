"""Several channels are mixed to one."""

import struct

import pytest

from streams.audio.mono import mono_samples
from tests.streams.audio.pcm_samples import samples
from tests.streams.audio.wav_files import fmt, wav


@pytest.mark.parametrize(
    ("channels", "data", "mixed"),
    [
        (2, samples(100, 300, -32_768, -32_768, 1, 0), samples(200, -32_768, 0)),
        (2, samples(100, 300, 5), samples(200)),
        (3, samples(3, 6, 9, 0, 0, -3), samples(6, -1)),
    ],
    ids=["stereo", "half a frame", "three"],
)
def test_each_sample_is_the_mean_of_its_frame(channels: int, data: bytes, mixed: bytes):
    file = wav(fmt(1, channels, 8_000, 16), data=data) + struct.pack("<4sI", b"LIST", 4) + b"INFO"

    assert mono_samples(file) == (mixed, 8_000)


def test_another_file_is_not_mixed():
    with pytest.raises(ValueError, match="no samples"):
        mono_samples(wav(fmt(1, 0, 8_000, 16)))
