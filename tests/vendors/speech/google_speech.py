"""Calls of Google's voices, and their audio."""

from base64 import b64encode
from typing import Any

import lameenc
from pydantic import SecretStr

from streams.audio.audio import wav_header
from streams.wire.codec import dumps
from tests.vendors.http.upstream import Respond, plain
from vendors.account import Account
from vendors.protocols import AudioFormat, SpeechItem
from vendors.speech.google_tts import GoogleSpeech

PCM = AudioFormat("audio/pcm", 16_000)
SECOND = b"\1\0" * 24_000


def account(url: str) -> Account:
    return Account("main", "vendor_d_audio", url, SecretStr("k1"))


async def spoken(client: GoogleSpeech, text: str = "Hello you.") -> list[SpeechItem]:
    async with client.speak(text) as items:
        return [item async for item in items]


def said(audio: bytes, *times_s: float | None, **more: Any) -> Respond:
    """Return a response with the times of the words in order. None stands for a missing time."""
    points = [{"markName": f"w{n}", "timeSeconds": s} for n, s in enumerate(times_s) if s is not None]
    value = {"audioContent": b64encode(audio).decode(), **({"timepoints": points} if points else {}), **more}
    return plain(200, dumps(value), Content_Type="application/json")


def wav(samples: bytes = SECOND, rate: int = 24_000, **more: int) -> bytes:
    return wav_header(rate, data_bytes=len(samples), **more) + samples


def mp3(seconds: int) -> bytes:
    encoder = lameenc.Encoder()
    encoder.set_bit_rate(32)
    encoder.set_in_sample_rate(24_000)
    encoder.set_out_sample_rate(24_000)
    encoder.set_channels(1)
    encoder.silence()
    return bytes(encoder.encode(SECOND * seconds) + encoder.flush())
