"""Recognition by vendor A: which audio is accepted, and how fast it is sent."""

from time import monotonic

import pytest

from streams.wire.codec import dumps
from tests.vendors.http.upstream import Upstream, plain
from tests.vendors.speech.azure.clients import recognizer, transcribe
from tests.vendors.speech.azure.inputs import TONE
from tests.vendors.speech.azure.service import Service, buffered, ogg, playing
from vendors.errors import Garbled, Refused
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioFormat, Transcript


async def test_empty_audio_is_not_sent(http: VendorHttp, upstream: Upstream):
    async def play(service: Service) -> None:
        await service.begin_turn()

    upstream.respond_with(playing(play))

    with pytest.raises(Refused, match="does not accept empty audio"):
        await transcribe(recognizer(http, upstream.url), buffered())


async def test_audio_after_five_seconds_is_sent_at_double_speed(http: VendorHttp, upstream: Upstream):
    arrived: list[float] = []

    async def play(service: Service) -> None:
        await service.begin_turn()
        for size in (5 * len(TONE), 1 << 30):
            await service.samples(size)
            arrived.append(monotonic())
        await service.phrase("Long.")
        await service.say("turn.end", {})

    upstream.respond_with(playing(play))
    begun = monotonic()
    await transcribe(recognizer(http, upstream.url), buffered(*[TONE] * 5, TONE[:12_800]))

    assert arrived[1] - begun >= 0.1  # 0.4 s, minus the last message.


@pytest.mark.parametrize(
    ("kind", "name"),
    [("audio/mpeg", "MP3"), ("audio/webm", "WebM"), ("audio/mp4", "MP4"), ("audio/flac", "FLAC")],
)
async def test_unsupported_containers_are_refused_before_sending(
    http: VendorHttp, upstream: Upstream, kind: str, name: str
):
    with pytest.raises(Refused, match=f"does not accept {name}") as fault:
        await transcribe(recognizer(http, upstream.url), buffered(b"x"), AudioFormat(kind, 0))

    assert not fault.value.retryable
    assert upstream.seen == []


async def test_short_ogg_goes_over_http_in_one_piece(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(plain(200, dumps({"RecognitionStatus": "Success", "DisplayText": "Hi.", "Offset": "1"})))

    transcripts = await transcribe(
        recognizer(http, upstream.url, model="cm-1"),
        buffered(ogg(59)),
        AudioFormat("audio/ogg", 0),
    )

    assert transcripts == [Transcript("Hi.", final=True)]
    (seen,) = upstream.seen
    assert seen.path == "/stt/speech/recognition/conversation/cognitiveservices/v1"
    assert dict(seen.query) == {"language": "en-US", "format": "simple", "profanity": "raw", "cid": "cm-1"}
    assert seen.headers["Content-Type"] == "audio/ogg; codecs=opus"
    assert seen.body == ogg(59)


@pytest.mark.parametrize(
    ("audio", "what"),
    [(ogg(61), "more than 60 s"), (ogg(5, b"\1vorbis"), "Ogg files with Opus")],
    ids=["long", "vorbis"],
)
async def test_other_ogg_is_refused_before_sending(http: VendorHttp, upstream: Upstream, audio: bytes, what: str):
    with pytest.raises(Refused, match=what):
        await transcribe(recognizer(http, upstream.url), buffered(audio), AudioFormat("audio/ogg", 0))

    assert upstream.seen == []


@pytest.mark.parametrize("answer", [b"[]", b"{}", b"<html>"])
async def test_answers_without_a_status_are_garbled(http: VendorHttp, upstream: Upstream, answer: bytes):
    upstream.respond_with(plain(200, answer))

    with pytest.raises(Garbled):
        await transcribe(recognizer(http, upstream.url), buffered(ogg(1)), AudioFormat("audio/ogg", 0))
