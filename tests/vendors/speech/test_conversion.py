"""Conversions are limited in number, length and time."""

import asyncio
import io

import av
import pytest

from tests.streams.audio.phone_files import phone_file
from vendors.speech.conversion import (
    MAX_WAITING,
    THREADS,
    AudioConverter,
    ConversionBusy,
    NotConverted,
    open_audio_converter,
)
from vendors.speech.decoding import FoundSound

RECORDING = phone_file("amr", seconds=2)


async def test_more_than_a_few_callers_do_not_wait():
    count = THREADS + MAX_WAITING + 3
    async with open_audio_converter() as converter:
        conversions = (converter.convert(RECORDING, "audio/amr") for _ in range(count))
        results = await asyncio.gather(*conversions, return_exceptions=True)

    assert sum(isinstance(result, ConversionBusy) for result in results) == 3
    assert sum(isinstance(result, bytes) and len(result) >= 64_000 for result in results) == count - 3


@pytest.mark.parametrize(
    ("limits", "reported"),
    [({"max_audio_s": 1}, "is longer than 1 s"), ({"max_elapsed_s": 0}, "takes more than 0 s to convert")],
)
async def test_long_and_slow_conversions_are_stopped(limits: dict[str, float], reported: str):
    converter = AudioConverter(**limits)

    with pytest.raises(NotConverted, match=reported):
        await converter.convert(RECORDING, "audio/amr")
    await converter.close()


@pytest.mark.parametrize(
    "damaged", [b"#EXTM3U\nfile:///etc/hostname\n", b"caff\0\1\0\0" + bytes(200), phone_file("m4a")[:300]]
)
async def test_damaged_files_are_reported(damaged: bytes):
    async with open_audio_converter() as converter:
        with pytest.raises(NotConverted, match="damaged"):
            await converter.convert(damaged, "audio/mp4")


def video() -> bytes:
    """Return MP4 with a black picture and no sound."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        container.mux(stream.encode(av.VideoFrame(64, 64, "yuv420p")))
        container.mux(stream.encode(None))
    return file.getvalue()


@pytest.mark.parametrize(
    ("audio", "mime_type", "reported"),
    [
        (phone_file("yamaha"), "audio/wav", "has a codec that this server cannot decode"),
        (video(), "audio/mp4", "has no sound"),
    ],
    ids=["codec", "video"],
)
async def test_the_reason_is_the_one_that_applies(audio: bytes, mime_type: str, reported: str):
    async with open_audio_converter() as converter:
        with pytest.raises(NotConverted, match=f"^{reported}$"):
            await converter.convert(audio, mime_type)


async def test_sound_is_found_without_decoding_all_of_a_file():
    async with open_audio_converter() as converter:
        found = await converter.find_sound(RECORDING, "audio/amr", min_s=0.1)
        silence = await converter.find_sound(phone_file("flac", seconds=2, silent=True), "audio/flac", min_s=0.1)
        endless = await converter.find_sound(phone_file("flac", seconds=61, silent=True), "audio/flac", min_s=0.1)

    assert found is not None
    assert found.is_audible
    assert 0.1 <= found.seconds < 1
    assert silence == FoundSound(2, is_audible=False)
    assert endless is None
