"""Whisper transcribes speech of a local voice in every container format."""

import io
import random
import struct

import pytest

from streams.audio.audio import wav_header
from tests.vendors.local.conftest import Local, refusal
from vendors.local.endpoints.encoding import Mp3
from vendors.local.engines.engines import Engines

SAID = "The quick brown fox jumps over the lazy dog."
WORDS = {"quick", "brown", "fox", "jumps", "over", "lazy", "dog"}


def words(text: str) -> set[str]:
    return set(text.lower().replace(".", "").replace(",", "").split())


@pytest.fixture(scope="module")
async def speech(engines: Engines, needs) -> bytes:
    """A WAV file of `SAID`."""
    needs("whisper", "piper")
    async with engines.voice("piper").speak(SAID, voice=None, speed=1.0) as spoken:
        pcm = b"".join([piece.pcm async for piece in spoken])
    return wav_header(22_050, data_bytes=len(pcm)) + pcm


def converted(wav: bytes, container: str, codec: str, rate: int) -> bytes:
    av = pytest.importorskip("av")
    out = io.BytesIO()
    with av.open(io.BytesIO(wav), format="wav") as source, av.open(out, "w", format=container) as target:
        stream = target.add_stream(codec, rate=rate, layout="mono")
        resampler = av.AudioResampler(stream.format, "mono", rate, frame_size=stream.frame_size or None)
        for frame in [*source.decode(audio=0), None]:
            for piece in resampler.resample(frame):
                target.mux(stream.encode(piece))
        target.mux(stream.encode(None))
    return out.getvalue()


async def test_spoken_words_are_recognized(local: Local, speech: bytes) -> None:
    async with local.transcription(speech, language="en", prompt="A sentence about animals.") as response:
        assert response.status == 200
        answer = await response.json()
    assert len(words(answer["text"]) & WORDS) >= 6
    assert answer["usage"]["type"] == "duration"
    assert 2 <= answer["usage"]["seconds"] <= 4
    assert set(answer) == {"text", "usage"}


async def test_verbose_answer_has_segments(local: Local, speech: bytes) -> None:
    async with local.transcription(speech, response_format="verbose_json") as response:
        answer = await response.json()
    assert (answer["task"], answer["language"]) == ("transcribe", "english")
    assert answer["duration"] == pytest.approx((len(speech) - 44) / 44_100, abs=0.01)
    assert answer["text"] == "".join(segment["text"] for segment in answer["segments"]).strip()
    segment = answer["segments"][0]
    assert 0 <= segment["start"] < segment["end"] <= answer["duration"] + 0.5
    assert segment["tokens"]


@pytest.mark.parametrize(
    ("container", "codec", "rate"),
    [
        ("webm", "libopus", 48_000),
        pytest.param("amr", "libopencore_amrnb", 8_000, marks=pytest.mark.soak),
        pytest.param("ogg", "libopus", 48_000, marks=pytest.mark.soak),
        pytest.param("flac", "flac", 22_050, marks=pytest.mark.soak),
        pytest.param("mp4", "aac", 44_100, marks=pytest.mark.soak),
    ],
)
async def test_every_container_is_decoded(
    local: Local, speech: bytes, container: str, codec: str, rate: int
) -> None:
    async with local.transcription(converted(speech, container, codec, rate)) as response:
        answer = await response.json()
    assert len(words(answer["text"]) & WORDS) >= 6


async def test_speech_in_an_mp3_is_recognized(local: Local, speech: bytes) -> None:
    encoder = Mp3(22_050)
    async with local.transcription(encoder.encode(speech[44:]) + encoder.finish()) as response:
        assert len(words((await response.json())["text"]) & WORDS) >= 6


async def test_silence_and_noise_are_recognized_as_no_words(local: Local, needs) -> None:
    needs("whisper")
    noise = random.Random(1).choices(range(-300, 300), k=48_000)  # noqa: S311 - noise
    for pcm in (bytes(96_000), struct.pack("<48000h", *noise)):
        async with local.transcription(wav_header(16_000) + pcm) as response:
            assert await response.json() == {"text": "", "usage": {"type": "duration", "seconds": 3}}


@pytest.mark.soak
async def test_long_recordings_are_accepted(local: Local, needs) -> None:
    needs("whisper")
    async with local.transcription(wav_header(16_000) + bytes(300 * 32_000)) as response:
        assert (await response.json())["usage"]["seconds"] == 300


@pytest.mark.parametrize(
    ("audio", "fields", "reported"),
    [
        (b"ffconcat version 1.0\nfile /etc/hostname\n", {}, ("file", None)),
        (b"<html></html>", {}, ("file", None)),
        (b"", {}, ("file", None)),
        (b"\x1a\x45\xdf\xa3" + bytes(100), {}, ("file", None)),
        (b"RIFF\0\0\0\0WAVE", {}, ("file", None)),
        (wav_header(16_000) + bytes(1_000), {}, ("file", "audio_too_short")),
        (wav_header(16_000) + bytes(32_000), {"language": "de"}, ("language", "unsupported_language")),
        (wav_header(16_000) + bytes(32_000), {"response_format": "srt"}, ("response_format", None)),
        (wav_header(16_000) + bytes(32_000), {"model": "whisper-9"}, ("model", "model_not_found")),
        (b"fLaC" + bytes(25 * 1024 * 1024), {}, ("file", None)),
    ],
    ids=["playlist", "html", "empty", "webm", "wav", "short", "language", "format", "model", "large"],
)
async def test_undecodable_audio_is_refused(
    local: Local, needs, audio: bytes, fields: dict[str, str], reported: tuple[str, str | None]
) -> None:
    needs("whisper")
    async with local.transcription(audio, **fields) as response:
        status, error = await refusal(response)
    assert status in {400, 404, 413}
    assert (error["param"], error["code"]) == reported


async def test_form_without_file_is_refused(local: Local, needs) -> None:
    needs("whisper")
    for body in (
        {"data": {"model": "whisper"}},
        {"data": b"--x\r\nbroken", "headers": {"Content-Type": "multipart/form-data"}},
    ):
        async with local.http.post(f"{local.url}/audio/transcriptions", **body) as response:
            assert (await refusal(response))[0] == 400


def test_decoded_mp3_is_late_by_the_delay_of_its_encoder(needs) -> None:
    needs("espeak", "whisper")
    av, np = pytest.importorskip("av"), pytest.importorskip("numpy")
    samples = np.zeros(44_100, np.int16)
    samples[22_050:22_250] = 20_000 * np.sin(np.arange(200) * 0.6)
    encoder = Mp3(22_050)
    mp3 = encoder.encode(samples.tobytes()) + encoder.finish()
    with av.open(io.BytesIO(mp3), format="mp3") as container:
        decoded = np.concatenate([frame.to_ndarray().ravel() for frame in container.decode(audio=0)])
    click_ms = int(np.argmax(np.abs(decoded) > 0.3)) / 22.05
    assert click_ms == pytest.approx(1_000 + encoder.delay_ms, abs=2)
