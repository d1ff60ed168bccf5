"""Recognition by vendor A: live uploads, and segments joined to one text."""

import pytest

from streams.input_buffer import InputBuffer
from streams.wire.codec import loads
from streams.wire.errors import InvalidParameter
from tests.vendors.http.upstream import Upstream
from tests.vendors.speech.azure.clients import PCM, recognizer, transcribe
from tests.vendors.speech.azure.inputs import TONE
from tests.vendors.speech.azure.service import Service, buffered, playing
from vendors.errors import Garbled, Refused
from vendors.http.transport import VendorHttp
from vendors.protocols import Transcript
from vendors.speech.azure.frames import Frame, text_frame


async def test_the_turn_request_contains_the_settings_of_the_strategy(http: VendorHttp, upstream: Upstream):
    contexts: list[Frame] = []

    async def play(service: Service) -> None:
        config = await service.receive()
        assert config is not None
        assert config.path == "speech.config"
        contexts.append(await service.begin_turn())
        header = await service.receive()
        assert header is not None
        assert (header.headers["content-type"], header.body[:4], header.body[4:8]) == (
            "audio/x-wav",
            b"RIFF",
            bytes(4),
        )
        assert header.request_id == service.turn
        await service.phrase("Servus.")
        await service.say("turn.end")

    upstream.respond_with(playing(play))
    options = {"profanity": "masked", "phrases": ["Ödön"]}
    client = recognizer(http, upstream.url, language_code="de-at", options=options)

    assert (await transcribe(client, buffered(TONE)))[-1] == Transcript("Servus.", final=True)

    (seen,) = upstream.seen
    assert seen.path == "/stt/speech/universal/v2"
    assert dict(seen.query) == {"language": "de-AT", "format": "simple", "profanity": "masked"}
    assert seen.headers["Ocp-Apim-Subscription-Key"] == "k1"
    assert len(seen.headers["X-ConnectionId"]) == 32
    assert loads(contexts[0].body) == {
        "phraseDetection": {"mode": "Conversation", "language": "de-AT"},
        "dgi": {"Groups": [{"Type": "Generic", "Items": [{"Text": "Ödön"}]}]},
    }


async def test_audio_is_uploaded_live_and_partial_text_arrives(http: VendorHttp, upstream: Upstream):
    async def play(service: Service) -> None:
        await service.begin_turn()
        assert await service.samples(4) == b"abcd"
        await service.say("turn.start", {"context": {"serviceTag": "x"}})
        await service.say("speech.hypothesis", {"Text": "good", "Offset": 0, "Duration": 1})
        more = await service.receive()
        assert more is not None
        assert (more.path, more.request_id, more.body) == ("audio", service.turn, b"efgh")
        await service.phrase("Good day.")
        await service.say("turn.end")

    upstream.respond_with(playing(play))
    live = InputBuffer()
    live.write(b"abcd")
    async with recognizer(http, upstream.url).transcribe(live, PCM) as transcripts:
        assert await anext(transcripts) == Transcript("good", final=False)  # The input continues.
        live.write(b"efgh")
        live.end()
        assert [item async for item in transcripts] == [
            Transcript("Good day.", final=False),
            Transcript("Good day.", final=True),
        ]


async def test_segments_are_joined(http: VendorHttp, upstream: Upstream):
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(1 << 30)
        await service.phrase("One.")
        await service.phrase("", status="NoMatch")
        await service.say("speech.fragment", {"Text": "two"})
        await service.phrase("Two.")
        await service.phrase("", status="EndOfDictation")
        await service.say("turn.end", {})

    upstream.respond_with(playing(play))

    assert await transcribe(recognizer(http, upstream.url), buffered(TONE)) == [
        Transcript("One.", final=False),
        Transcript("One. two", final=False),
        Transcript("One. Two.", final=False),
        Transcript("One. Two.", final=True),
    ]


async def test_scripts_without_gaps_are_joined_without_them(http: VendorHttp, upstream: Upstream):
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(1 << 30)
        await service.phrase("你好。")
        await service.phrase("世界。")
        await service.say("turn.end", {})

    upstream.respond_with(playing(play))

    assert (await transcribe(recognizer(http, upstream.url, language_code="zh"), buffered(TONE)))[
        -1
    ].text == "你好。世界。"


@pytest.mark.parametrize("status", ["NoMatch", "InitialSilenceTimeout", "BabbleTimeout"])
async def test_unrecognized_audio_has_an_empty_text(http: VendorHttp, upstream: Upstream, status: str):
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(1 << 30)
        await service.phrase("", status=status)
        await service.say("turn.end", {})

    upstream.respond_with(playing(play))

    assert await transcribe(recognizer(http, upstream.url), buffered(TONE)) == [Transcript("", final=True)]


@pytest.mark.parametrize(
    ("status", "retryable"),
    [("Error", True), ("TooManyRequests", True), ("BadRequest", False), ("Forbidden", False), ("Surprise", False)],
)
async def test_the_error_status_of_a_task_is_reported(
    http: VendorHttp, upstream: Upstream, status: str, retryable: bool
):
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.phrase("", status=status)

    upstream.respond_with(playing(play))

    with pytest.raises(Refused, match=f"vendor_a_audio broke off with the status {status}") as fault:
        await transcribe(recognizer(http, upstream.url), buffered(TONE))
    assert fault.value.retryable is retryable


async def test_a_turn_that_the_vendor_ends_early_is_continued(http: VendorHttp, upstream: Upstream):
    rest: list[bytes] = []

    async def play(service: Service) -> None:
        await service.begin_turn()
        first = service.turn
        await service.samples(len(TONE))
        await service.phrase("One.", begin=0.25, seconds=0.5)
        await service.say("turn.end", {})
        await service.begin_turn()
        assert service.turn != first
        rest.append(await service.samples(1 << 30))
        await service.phrase("Two.")
        await service.say("turn.end", {})

    upstream.respond_with(playing(play))
    live = InputBuffer()
    live.write(TONE)
    async with recognizer(http, upstream.url).transcribe(live, PCM) as transcripts:
        assert await anext(transcripts) == Transcript("One.", final=False)
        live.write(b"more")
        live.end()
        texts = [item async for item in transcripts]

    assert texts[-1] == Transcript("One. Two.", final=True)
    assert rest == [TONE[24_000:] + b"more"]  # From 0.75 s.


async def test_a_turn_that_ends_early_without_text_is_an_error(http: VendorHttp, upstream: Upstream):
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(4)
        await service.say("turn.end", {})

    upstream.respond_with(playing(play))
    live = InputBuffer()
    live.write(b"abcd")

    with pytest.raises(Garbled, match="ended its turn before the end of the audio"):
        await transcribe(recognizer(http, upstream.url), live)


async def test_input_errors_are_raised_unchanged(http: VendorHttp, upstream: Upstream):
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(4)

    upstream.respond_with(playing(play))
    live = InputBuffer()
    live.write(b"abcd")
    live.fail(InvalidParameter("input timed out"))

    with pytest.raises(InvalidParameter, match="input timed out"):
        await transcribe(recognizer(http, upstream.url), live)


async def test_a_vendor_that_closes_during_the_upload_is_reported_with_its_reason(
    http: VendorHttp, upstream: Upstream
):
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.socket.close(code=1007, message=b"Unsupported audio format.")

    upstream.respond_with(playing(play))

    with pytest.raises(Refused, match="closed its WebSocket with code 1007: Unsupported audio format"):
        await transcribe(recognizer(http, upstream.url), buffered(TONE * 4))


@pytest.mark.parametrize("body", ["nonsense", "[" * 300 + "]" * 300, "[" * 5000 + "]" * 5000])
async def test_phrases_that_cannot_be_decoded_are_garbled(http: VendorHttp, upstream: Upstream, body: str):
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(1 << 30)
        await service.socket.send_str(text_frame({"X-RequestId": service.turn, "Path": "speech.phrase"}, body))

    upstream.respond_with(playing(play))

    with pytest.raises(Garbled, match="sent a"):
        await transcribe(recognizer(http, upstream.url), buffered(TONE))


async def test_a_text_that_is_not_understood_is_no_silence(http: VendorHttp, upstream: Upstream):
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(1 << 30)
        await service.say("speech.phrase", {"RecognitionStatus": "Success", "NBest": [5]})
        await service.say("turn.end")

    upstream.respond_with(playing(play))

    with pytest.raises(Garbled, match="sent malformed phrases"):
        await transcribe(recognizer(http, upstream.url), buffered(TONE))


async def test_halves_of_characters_in_a_phrase_are_replaced(http: VendorHttp, upstream: Upstream):
    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(1 << 30)
        headers = {"X-RequestId": service.turn, "Path": "speech.phrase"}
        await service.socket.send_str(text_frame(headers, r'{"DisplayText": "a\ud83d b"}'))
        await service.say("turn.end")

    upstream.respond_with(playing(play))

    assert (await transcribe(recognizer(http, upstream.url), buffered(TONE)))[-1].text == "a\ufffd b"


async def test_a_time_beyond_the_audio_does_not_skip_the_rest_of_it(http: VendorHttp, upstream: Upstream):
    heard: list[int] = []

    async def play(service: Service) -> None:
        await service.begin_turn()
        await service.samples(len(TONE))
        await service.phrase("One.", begin=10**6)
        await service.say("turn.end")
        await service.begin_turn()
        heard.append(len(await service.samples(1 << 30)))
        await service.phrase("Two.")
        await service.say("turn.end")

    upstream.respond_with(playing(play))
    live = InputBuffer()
    live.write(TONE)

    async with recognizer(http, upstream.url).transcribe(live, PCM) as transcripts:
        assert await anext(transcripts) == Transcript("One.", final=False)
        live.write(TONE[:3200])
        live.end()
        assert [transcript async for transcript in transcripts][-1] == Transcript("One. Two.", final=True)

    assert heard == [3200]
