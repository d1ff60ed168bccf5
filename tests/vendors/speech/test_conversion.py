"""Conversions are limited in number, length and time."""

import asyncio

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
