"""Damaged audio, and audio that nothing can decode, is refused with its format before a recognizer is asked."""

import pytest

from streams.audio.audio import wav_header
from tests.app.ai.conftest import Talk
from tests.app.ai.speech.ears import ears, said
from tests.running.servers import Server
from tests.streams.audio.damaged_files import HUGE_RATE, LOUD, UNKNOWN_CODECS, nameless_mp4, with_rate
from tests.streams.audio.phone_files import phone_file
from tests.streams.audio.wav_files import fmt, wav
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


def impossible(name: str, rate: int) -> str:
    return f"audio is {name}, which has a sample rate of {rate} Hz instead of 1000 to 768000 Hz"


@pytest.mark.parametrize(
    ("audio", "reported"),
    [
        (with_rate("au", 805_306_368), impossible("AU", 805_306_368)),
        (with_rate("caf_pcm", HUGE_RATE), impossible("CAF", HUGE_RATE)),
        (with_rate("wav_float", HUGE_RATE), impossible("WAV", HUGE_RATE)),
        (with_rate("wav_24", 16_777_201), impossible("WAV", 16_777_201)),
        (wav_header(805_306_368) + LOUD, impossible("WAV", 805_306_368)),
        (wav_header(1) + LOUD, impossible("WAV", 1)),
        (wav_header(16_000, channels=500) + LOUD, "audio is WAV, which has 500 channels instead of 1 to 64"),
        *(
            (UNKNOWN_CODECS[codec], "audio is WAV (another codec), which has an unknown codec")
            for codec in ("tag 0x0000", "PCM of 0 bits", "unknown GUID")
        ),
        (nameless_mp4(), "audio is MP4, which has an unknown codec"),
        (phone_file("m4a")[:900], "audio is MP4, which is damaged"),
    ],
    ids=[
        "au", "caf", "float", "24 bits", "16 bits", "1 Hz", "channels", "no tag", "no bits", "guid", "mp4",
        "cut mp4",
    ],
)  # fmt: skip
async def test_no_recognizer_is_asked(
    talk: Talk, server: Server, sandbox: Running, audio: bytes, reported: str
) -> None:
    """Whether it accepts files of the type or not."""
    await ears(server, sandbox, "one", "vendor_b_audio", model="whisper-1")
    await ears(server, sandbox, "two", "vendor_a_audio")

    for name in ("one", "two"):
        seen = await said(talk, audio, name)

        assert seen[-1].name == "error"
        assert seen[-1].content["error"]["message"] == f"invalid_parameter: {reported}"
    assert not list(sandbox.bill.since(0))


async def test_a_recognizer_that_accepts_the_type_is_asked_about_a_codec_that_is_not_decoded_here(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await ears(server, sandbox, "one", "vendor_b_audio", model="whisper-1")

    await said(talk, phone_file("yamaha"), "one")

    assert list(sandbox.bill.since(0))


async def test_a_format_that_is_longer_than_any_is_no_failure_of_the_server(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    """FFmpeg reads it, but it is not passed on while it arrives."""
    await ears(server, sandbox, "one", "vendor_b_audio", model="whisper-1")
    audio = wav(fmt(1, 1, 16_000, 16, more=bytes(70_000)), data=LOUD)

    seen = await said(talk, audio, "one")

    assert "internal" not in str(seen[-1].content)
