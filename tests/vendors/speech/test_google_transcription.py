"""Google's recognition: segments of one transcript, and audio types."""

from typing import Any

import pytest
from pydantic import SecretStr

from streams.input_buffer import InputBuffer
from streams.wire.codec import dumps, loads
from tests.vendors.http.upstream import Respond, Upstream, plain
from tests.vendors.speech.google_speech import PCM, account, mp3, said, spoken, wav
from vendors.account import Account, RecognitionSpec, SpeechSpec
from vendors.errors import Garbled, Refused
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioFormat, Transcript
from vendors.speech.google_stt import GoogleRecognition
from vendors.speech.google_tts import GoogleSpeech


async def transcribed(
    http: VendorHttp, upstream: Upstream, audio: bytes = b"\1\0", kind: AudioFormat = PCM, **spec: Any
) -> list[Transcript]:
    client = GoogleRecognition(http, account(upstream.url), RecognitionSpec(**{"model": "latest_short", **spec}))
    buffer = InputBuffer()
    buffer.write(audio)
    buffer.end()
    async with client.transcribe(buffer, kind) as transcripts:
        return [transcript async for transcript in transcripts]


def heard(*texts: str, **more: Any) -> Respond:
    results = [{"alternatives": [{"transcript": text, "confidence": 0.9}, {"transcript": "no"}]} for text in texts]
    return plain(200, dumps({**({"results": results} if texts else {}), **more}), Content_Type="application/json")


async def test_segments_form_one_transcript(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(heard("Hello you.", " How are you?", totalBilledTime="15.500s", requestId="1"))

    transcripts = await transcribed(http, upstream, language_code="en-GB", prompt="Parley, valkey ;\n" + "x" * 200)

    assert transcripts == [Transcript("Hello you. How are you?", final=True, seconds=15.5)]
    (seen,) = upstream.seen
    assert (seen.path, seen.headers["X-Goog-Api-Key"]) == ("/v1/speech:recognize", "k1")
    assert loads(seen.body) == {
        "config": {
            "encoding": "LINEAR16",
            "sampleRateHertz": 16_000,
            "languageCode": "en-GB",
            "enableAutomaticPunctuation": True,
            "model": "latest_short",
            "speechContexts": [{"phrases": ["Parley", "valkey", "x" * 100]}],
        },
        "audio": {"content": "AQA="},
    }


async def test_silence_is_an_empty_transcript(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(heard(), plain(200, dumps({"results": [{"alternatives": []}, {"resultEndTime": "1s"}]})))

    assert await transcribed(http, upstream) == [Transcript("", final=True)]
    assert await transcribed(http, upstream) == [Transcript("", final=True)]


@pytest.mark.parametrize(
    ("mime_type", "audio", "reported"),
    [
        ("audio/wav", b"RIFF", {}),
        ("audio/flac", b"fLaC", {}),
        ("audio/ogg", b"OggS", {"encoding": "OGG_OPUS", "sampleRateHertz": 48_000}),
        ("audio/webm", b"\x1a\x45", {"encoding": "WEBM_OPUS", "sampleRateHertz": 48_000}),
        ("audio/mpeg", mp3(1), {"encoding": "MP3", "sampleRateHertz": 24_000}),
        (
            "audio/mpeg",
            b"ID3\4\0\0\0\2\0\0" + bytes(32_768) + mp3(1),
            {"encoding": "MP3", "sampleRateHertz": 24_000},
        ),
    ],
)
async def test_audio_types_are_converted_to_encodings(
    http: VendorHttp, upstream: Upstream, mime_type: str, audio: bytes, reported: dict[str, Any]
):
    upstream.respond_with(heard("a"))

    await transcribed(http, upstream, audio, AudioFormat(mime_type, 0), options={"extra": {"useEnhanced": True}})

    config = loads(upstream.seen[0].body)["config"]
    assert {name: config[name] for name in ("encoding", "sampleRateHertz") if name in config} == reported
    assert config["useEnhanced"]


async def test_unsupported_audio_is_not_sent(http: VendorHttp, upstream: Upstream):
    with pytest.raises(Refused, match="does not accept MP4") as fault:
        await transcribed(http, upstream, b"", AudioFormat("audio/mp4", 0))

    assert not fault.value.retryable
    assert upstream.seen == []


@pytest.mark.parametrize(
    "value",
    [
        {"results": [1]},
        {"results": [{"alternatives": [{"transcript": 1}]}]},
        {"results": [{"alternatives": ["x"]}]},
        {"results": {"alternatives": [{"transcript": "x"}]}},
        [],
    ],
)
async def test_unknown_results_are_errors(http: VendorHttp, upstream: Upstream, value: Any):
    upstream.respond_with(plain(200, dumps(value)))

    with pytest.raises(Garbled):
        await transcribed(http, upstream)


async def test_an_address_with_a_placeholder_names_the_service(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(said(wav()), heard("a"))
    account = Account("main", "vendor_d_audio", f"{upstream.url}/{{service}}", SecretStr("k1"))
    buffer = InputBuffer()
    buffer.end()

    await spoken(GoogleSpeech(http, account, SpeechSpec(model="", audio_format="wav")))
    async with GoogleRecognition(http, account, RecognitionSpec(model="")).transcribe(buffer, PCM):
        pass

    assert [seen.path for seen in upstream.seen] == [
        "/texttospeech/v1/text:synthesize",
        "/speech/v1/speech:recognize",
    ]
