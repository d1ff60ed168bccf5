"""Speech by vendor A over HTTP, and over a socket that sends mouth shapes before their audio."""

from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from streams.wire.codec import dumps, loads
from streams.wire.errors import ConfigInvalid, InvalidParameter
from tests.vendors.http.upstream import Respond, Upstream, plain, streaming
from tests.vendors.speech.azure.clients import audio_of, shapes_of, synthesize, voice
from vendors.errors import Empty, Garbled, Refused, VendorError
from vendors.http.transport import VendorHttp
from vendors.protocols import AudioBytes, SpeechFormat, SpeechItem, Viseme, Visemes
from vendors.speech.azure.frames import Frame, binary_frame, read_frame, text_frame
from vendors.speech.azure.tts import AudioAligner


class Service:
    """The vendor's end of a socket. It reads the request, sends `frames`, and closes with `close`."""

    def __init__(self, *frames: tuple[str, Any], close: tuple[int, bytes] | None = None) -> None:
        self.said: list[Frame] = []
        self._frames = frames
        self._close = close

    async def answer(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        while not self.said or self.said[-1].path != "ssml":
            self.said.append(read_frame((await socket.receive()).data))
        for path, body in self._frames:
            headers = {"Path": path, "X-RequestId": self.said[-1].request_id.upper()}
            if isinstance(body, bytes):
                await socket.send_bytes(binary_frame(headers, body))
            else:
                await socket.send_str(text_frame(headers, body if isinstance(body, str) else dumps(body).decode()))
        if self._close:
            await socket.close(code=self._close[0], message=self._close[1])
        await socket.receive()
        return socket


def reported(*items: tuple[str, int, int]) -> dict[str, Any]:
    return {"Metadata": [{"Type": kind, "Data": {"Offset": at, "VisemeId": shape}} for kind, at, shape in items]}


async def test_without_visemes_audio_comes_over_http(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b"one ", b"two"], content_type="audio/mpeg"))

    announced, *audio = await synthesize(voice(http, upstream.url, speed=1.5, prompt="cheerful"), "1 < 2")

    assert announced == SpeechFormat("audio/mpeg", 24_000)
    assert audio_of(audio) == b"one two"
    (seen,) = upstream.seen
    assert seen.path == "/tts/cognitiveservices/v1"
    assert {name: seen.headers[name] for name in ("Ocp-Apim-Subscription-Key", "Content-Type", "User-Agent")} == {
        "Ocp-Apim-Subscription-Key": "k1",
        "Content-Type": "application/ssml+xml",
        "User-Agent": "Parley",
    }
    assert seen.headers["X-Microsoft-OutputFormat"] == "audio-24khz-96kbitrate-mono-mp3"
    assert seen.body.endswith(
        b'<voice name="en-US-JennyNeural"><mstts:express-as style="cheerful"><prosody rate="+50%">1 &lt; 2'
        b"</prosody></mstts:express-as></voice></speak>"
    )


async def test_sentences_share_a_connection_over_http(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([b"one"], content_type="audio/mpeg"))
    client = voice(http, upstream.url)

    await synthesize(client)
    await synthesize(client)

    assert (len(upstream.seen), upstream.connections) == (2, 1)


@pytest.mark.parametrize(
    ("spec", "name", "announced"),
    [
        ({"audio_format": "wav"}, "raw-24khz-16bit-mono-pcm", SpeechFormat("audio/wav", 24_000)),
        (
            {"audio_format": "wav", "options": {"sample_rate": 16_000}},
            "raw-16khz-16bit-mono-pcm",
            SpeechFormat("audio/wav", 16_000),
        ),
        (
            {"options": {"sample_rate": 48_000}},
            "audio-48khz-192kbitrate-mono-mp3",
            SpeechFormat("audio/mpeg", 48_000),
        ),
    ],
)
async def test_the_strategy_determines_the_audio_format(
    http: VendorHttp, upstream: Upstream, spec: dict[str, Any], name: str, announced: SpeechFormat
):
    upstream.respond_with(plain(200, b"audio", Content_Type="audio/basic"))

    items = await synthesize(voice(http, upstream.url, **spec))

    assert items[0] == announced
    assert upstream.seen[0].headers["X-Microsoft-OutputFormat"] == name


async def test_with_visemes_speech_comes_over_a_socket(http: VendorHttp, upstream: Upstream):
    service = Service(
        ("turn.start", {"context": {"serviceTag": "ab"}}),
        ("response", {"audio": {"type": "inline", "streamId": "cd"}}),
        ("audio", b"a" * 1200),
        ("audio.metadata", reported(("Viseme", 0, 0), ("WordBoundary", 5, 9), ("Viseme", 1_000_000, 12))),
        ("audio", b"b" * 600),
        ("audio", b""),
        ("turn.end", {}),
    )
    upstream.respond_with(service.answer)

    items = await synthesize(
        voice(http, upstream.url, need_viseme=True, options={"style": "sad"}, prompt="Speak sadly.")
    )

    assert items == [
        SpeechFormat("audio/mpeg", 24_000),
        Visemes([Viseme(0, 0), Viseme(100, 12)]),
        AudioBytes(b"a" * 1200),  # The first 0.1 s.
        AudioBytes(b"b" * 600),
    ]
    (seen,) = upstream.seen
    assert seen.path == "/tts/cognitiveservices/websocket/v1"
    assert seen.headers["Ocp-Apim-Subscription-Key"] == "k1"
    config, context, markup = service.said
    assert [frame.path for frame in service.said] == ["speech.config", "synthesis.context", "ssml"]
    assert len({frame.request_id for frame in service.said}) == 1
    assert loads(config.body)["context"]["system"]["name"] == "Parley"
    wanted = loads(context.body)["synthesis"]["audio"]
    assert wanted["outputFormat"] == "audio-24khz-96kbitrate-mono-mp3"
    assert wanted["metadataOptions"]["visemeEnabled"] is True
    assert b'style="sad"' in markup.body


async def test_animated_shape_counts_once(http: VendorHttp, upstream: Upstream):
    chunks = [
        {
            "Type": "Viseme",
            "Data": {"Offset": "500000", "VisemeId": 4, "AnimationChunk": "…", "IsLastAnimation": last},
        }
        for last in (False, False, True)
    ]
    service = Service(("audio.metadata", {"Metadata": chunks}), ("audio", b"a"), ("turn.end", ""))
    upstream.respond_with(service.answer)

    assert shapes_of(await synthesize(voice(http, upstream.url, need_viseme=True))) == [Viseme(50, 4)]


async def test_messages_of_another_turn_are_ignored(http: VendorHttp, upstream: Upstream):
    async def answer(request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        request_id = read_frame((await socket.receive()).data).request_id
        for turn, audio in (("0" * 32, b"theirs"), (request_id, b"ours")):
            await socket.send_bytes(binary_frame({"Path": "audio", "X-RequestId": turn}, audio))
            if turn == request_id:
                await socket.send_str(text_frame({"Path": "turn.end", "X-RequestId": turn}, "{}"))
        await socket.receive()
        return socket

    upstream.respond_with(answer)
    assert audio_of(await synthesize(voice(http, upstream.url, need_viseme=True))) == b"ours"


@pytest.mark.parametrize(
    ("close", "kind", "message"),
    [
        ((1000, b""), Garbled, "ended its turn without a final event"),
        ((1002, b"dashed id"), Refused, "closed its WebSocket with code 1002: dashed id"),
        ((1007, b"Unsupported voice x."), Refused, "closed its WebSocket with code 1007: Unsupported voice x."),
        ((1007, b"Quota exceeded"), Refused, "closed its WebSocket with code 1007: Quota exceeded"),
        ((1011, b""), Refused, "closed its WebSocket with code 1011"),
        ((1013, b"slow\nreader"), Refused, "closed its WebSocket with code 1013: slow reader"),
        ((4000, b""), Refused, "closed its WebSocket with code 4000"),
        ((4429, b""), Refused, "closed its WebSocket with code 4429"),
        ((4999, b""), Garbled, "ended its turn without a final event"),
    ],
)
async def test_a_close_before_the_end_of_a_turn_is_an_error(
    http: VendorHttp, upstream: Upstream, close: tuple[int, bytes], kind: type[VendorError], message: str
):
    upstream.respond_with(Service(("audio", b"some"), close=close).answer)

    with pytest.raises(kind, match=f"vendor_a_audio {message}") as fault:
        await synthesize(voice(http, upstream.url, need_viseme=True))

    assert fault.value.retryable is (close[0] not in {1002, 1007, 4000})


@pytest.mark.parametrize(
    "frame",
    [
        ("audio.metadata", "[]"),
        ("audio.metadata", {"Metadata": [{"Type": "Viseme"}]}),
        ("audio.metadata", {"Metadata": [{"Type": "Viseme", "Data": {"Offset": "x", "VisemeId": 1}}]}),
        ("audio.metadata", {"Metadata": [{"Type": "Viseme", "Data": {"Offset": 0, "VisemeId": 22}}]}),
        ("audio.metadata", {"Metadata": 5}),
        ("audio", "{}"),
    ],
)
async def test_messages_that_are_not_understood_are_skipped(
    http: VendorHttp, upstream: Upstream, frame: tuple[str, Any]
):
    upstream.respond_with(Service(frame, ("audio", b"some"), ("turn.end", {})).answer)

    items = await synthesize(voice(http, upstream.url, need_viseme=True))

    assert (audio_of(items), shapes_of(items)) == (b"some", [])


async def test_metadata_that_is_no_json_is_garbled(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(Service(("audio.metadata", "{")).answer)

    with pytest.raises(Garbled, match="sent"):
        await synthesize(voice(http, upstream.url, need_viseme=True))


@pytest.mark.parametrize("need_viseme", [False, True])
async def test_turn_without_audio_is_empty(http: VendorHttp, upstream: Upstream, need_viseme: bool):
    silent: Respond = (
        Service(("turn.end", {})).answer if need_viseme else plain(200, b"", Content_Type="audio/mpeg")
    )
    upstream.respond_with(silent)

    with pytest.raises(Empty):
        await synthesize(voice(http, upstream.url, need_viseme=need_viseme))


async def test_audio_that_the_vendor_truncates_is_incomplete(http: VendorHttp, upstream: Upstream):
    upstream.respond_with(streaming([bytes(1_200_000)] * 16, content_type="audio/mpeg"))

    with pytest.raises(Garbled, match="cut its audio off at 10 minutes"):
        await synthesize(voice(http, upstream.url, audio_format="wav", options={"sample_rate": 16_000}))


def test_a_voice_is_required():
    with pytest.raises(ConfigInvalid, match="vendor_a_audio: voice is not set"):
        voice(None, "http://127.0.0.1", voice="")


@pytest.mark.parametrize("options", [{"style_degree": 3}, {"sample_rate": 8000}, {"style": 1}])
def test_wrong_options_are_named(options: dict[str, Any]):
    with pytest.raises(InvalidParameter, match=next(iter(options))):
        voice(None, "http://127.0.0.1", options=options)


@given(
    st.lists(
        st.one_of(st.binary(max_size=40), st.lists(st.integers(0, 300), min_size=1, max_size=3).map(sorted)),
        max_size=20,
    )
)
def test_shapes_come_no_later_than_their_audio(steps: list[bytes | list[int]]):
    aligned = AudioAligner(lambda duration_ms: duration_ms & ~1)  # A byte is a millisecond of audio.
    items: list[SpeechItem] = []
    last = 0
    for step in steps:
        if isinstance(step, bytes):
            items += aligned.add_audio(step)
        else:
            last = max(last, step[-1])
            items += aligned.add_visemes([Viseme(at, 1) for at in step])
            assert isinstance(items[-1], Visemes | AudioBytes)
        assert len(audio_of(items)) <= last
    items += aligned.end()

    assert audio_of(items) == b"".join(step for step in steps if isinstance(step, bytes))
    assert [shape.offset_ms for shape in shapes_of(items)] == [
        at for step in steps if isinstance(step, list) for at in step
    ]


def test_audio_without_shapes_is_held_for_ten_seconds():
    aligned = AudioAligner(lambda duration_ms: duration_ms)

    assert aligned.add_audio(bytes(10_000)) == []
    assert audio_of(aligned.add_audio(bytes(3))) == bytes(3)
    assert audio_of(aligned.end()) == bytes(10_000)
