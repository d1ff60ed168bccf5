"""Audio that begins within a frame, or behind other bytes, reaches a recognizer without them."""

import io

import pytest

from tests.app.ai.conftest import Talk
from tests.app.ai.speech.ears import coded, ears, heard
from tests.peers.sse_client import all_events
from tests.running.servers import Server
from tests.streams.audio.mp3_files import plain_mp3
from tests.streams.audio.phone_files import phone_file
from tests.streams.audio.rare_files import big_id3, misplaced_moov, plain_wav, rifx
from vendors.sandbox.server import Running


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.mark.parametrize(
    ("audio", "received"),
    [
        pytest.param(plain_mp3(seconds=2.0)[50:], "MP3", id="cut mp3"),
        pytest.param(b"\r\n" + plain_mp3(seconds=2.0), "MP3", id="mp3 behind a line break"),
        pytest.param(bytes(64) + plain_mp3(seconds=2.0), "MP3", id="mp3 behind silence"),
        pytest.param(big_id3() + phone_file("flac", seconds=2), "ENCODING_UNSPECIFIED", id="tagged flac"),
        pytest.param(big_id3() + plain_wav(), "ENCODING_UNSPECIFIED", id="tagged wav"),
        pytest.param(rifx(), "LINEAR16", id="rifx"),
        pytest.param(misplaced_moov(b"free"), "LINEAR16", id="mp4 behind a box"),
        pytest.param(phone_file("ac3", seconds=2)[50:], "LINEAR16", id="cut ac-3"),
        pytest.param(phone_file("mpegts", seconds=2)[50:], "LINEAR16", id="cut mpeg-ts"),
    ],
)
async def test_audio_is_recognized_behind_other_bytes(
    talk: Talk, server: Server, sandbox: Running, audio: bytes, received: str
) -> None:
    """The vendor gets the file without them. Of FLAC and WAV, it reads the encoding in the header."""
    await ears(server, sandbox, "one", "vendor_d_audio")

    body = talk.params("one", type="audio") + coded(audio)
    async with talk.post("/bp/ai/conversation", data=io.BytesIO(body)) as response:
        seen = await all_events(response)

    assert seen[-1].name == "end", seen[-1]
    (call,) = [entry for entry in sandbox.bill.since(0) if heard(entry)]
    assert call.asked.get("encoding") == received
