"""The sandboxed Azure refuses what violates the vendor's protocol of sockets."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from streams.audio.audio import wav_header
from streams.wire.codec import dumps, loads
from tests.vendors.speech.azure.inputs import PAUSE, TONE
from tests.vendors.speech.azure.sandbox_calls import ID, OTHER, SHORT, SSML
from tests.vendors.speech.azure.service import SECOND
from vendors.sandbox.server import Running
from vendors.speech.azure.frames import Frame, binary_frame, read_frame, text_frame

SPEAK, HEAR = "/azure/tts/cognitiveservices/websocket/v1", "/azure/stt/speech/universal/v2"
WORDS = {
    "metadataOptions": {"wordBoundaryEnabled": True, "sessionEndEnabled": True},
    "outputFormat": "raw-16khz-16bit-mono-pcm",
}


class Client:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def say(self, path: str, value: Any, turn: str = ID, **headers: str) -> None:
        given = {"Path": path, "X-RequestId": turn, "X-Timestamp": "2026-01-31T10:15:30.123Z", **headers}
        if isinstance(value, bytes):
            await self.socket.send_bytes(binary_frame(given, value))
        else:
            await self.socket.send_str(
                text_frame(given, value if isinstance(value, str) else dumps(value).decode())
            )

    async def speak(self, text: str, turn: str = ID, voice: str = "en-US-JennyNeural", audio: Any = WORDS) -> None:
        await self.say("synthesis.context", {"synthesis": {"audio": audio}}, turn)
        await self.say("ssml", SSML.format(voice=voice, text=text), turn)

    async def frames(self) -> list[Frame]:
        """Return all frames of a turn."""
        frames: list[Frame] = []
        while not frames or frames[-1].path != "turn.end":
            message = await self.socket.receive()
            assert message.type in {aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY}, message
            frames.append(read_frame(message.data))
        return frames

    async def closed(self) -> tuple[int, str]:
        while (message := await self.socket.receive()).type is not aiohttp.WSMsgType.CLOSE:
            assert message.type in {aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY}
        return message.data, message.extra or ""


@pytest.fixture
async def speaker(azure_session: aiohttp.ClientSession) -> AsyncIterator[Client]:
    async with azure_session.ws_connect(SPEAK) as socket:
        client = Client(socket)
        await client.say("speech.config", {"context": {}})
        yield client


@pytest.fixture
async def hearer(azure_session: aiohttp.ClientSession) -> AsyncIterator[Client]:
    async with azure_session.ws_connect(HEAR) as socket:
        client = Client(socket)
        await client.say("speech.config", {"context": {}})
        yield client


def context(mode: str = "Interactive", **detection: Any) -> dict[str, Any]:
    return {"phraseDetection": {"mode": mode, "language": "en-US", **detection}}


async def test_a_speech_turn_has_the_format_of_the_service(speaker: Client):
    await speaker.speak("two words")
    frames = await speaker.frames()

    assert [frame.path for frame in frames[:2]] == ["turn.start", "response"]
    stream = loads(frames[1].body)["audio"]["streamId"]
    audio = [frame for frame in frames if frame.path == "audio"]
    assert {frame.headers["x-streamid"] for frame in audio} == {stream}
    assert [frame.headers.get("content-type") for frame in (audio[0], audio[-1])] == ["audio/basic", None]
    assert (audio[-1].body, frames[-1].body) == (b"", b"{}")
    reported = [
        item for frame in frames if frame.path == "audio.metadata" for item in loads(frame.body)["Metadata"]
    ]
    assert [item["Type"] for item in reported] == ["WordBoundary", "WordBoundary", "SessionEnd"]
    assert reported[1]["Data"]["text"] == {"Text": "words", "Length": 5, "BoundaryType": "WordBoundary"}
    assert reported[2]["Data"]["Offset"] == sum(len(frame.body) for frame in audio) // 32 * 10_000


async def test_turns_follow_one_another_on_a_connection_with_ids_of_their_own(speaker: Client):
    await speaker.speak("one")
    await speaker.frames()
    await speaker.speak("two", OTHER)
    assert {frame.request_id for frame in await speaker.frames()} == {OTHER}
    await speaker.speak("three", ID)

    assert await speaker.closed() == (1002, "X-RequestId was used before.")


@pytest.mark.parametrize(
    ("fields", "close"),
    [
        ({"voice": "en-US-NobodyNeural"}, (1007, "Unsupported voice en-US-NobodyNeural.")),
        ({"text": "<nobody>"}, (1007, "Ssml should be valid XML")),
        (
            {"audio": {**WORDS, "outputFormat": "audio-24khz-32kbitrate-mono-mp3"}},
            (1007, "Unsupported audio format."),
        ),
        ({"audio": {**WORDS, "outputFormat": "loud"}}, (1007, "Unsupported audio format.")),
        ({"audio": {}}, (1007, "synthesis.context is incomplete.")),
        ({"text": "x" * 65_536}, (1007, "SSML is too large.")),
        ({"turn": "0000000a-0000-0000-0000-000000000000"}, (1002, "X-RequestId must be a UUID without dashes.")),
    ],
)
async def test_wrong_speech_turn_closes_the_socket(speaker: Client, fields: dict[str, Any], close: tuple[int, str]):
    await speaker.speak(**{"text": "hi", **fields})
    code, reason = await speaker.closed()

    assert (code, reason[: len(close[1])]) == close


@pytest.mark.parametrize("path", [SPEAK, HEAR])
async def test_configuration_is_sent_first_and_once(azure_session: aiohttp.ClientSession, path: str):
    async with azure_session.ws_connect(path) as socket:
        await Client(socket).say("ssml", "")
        assert await Client(socket).closed() == (1002, "The first message must be speech.config.")
    async with azure_session.ws_connect(path) as socket:
        client = Client(socket)
        await client.say("speech.config", {})
        await client.say("speech.config", {})
        assert await client.closed() == (1002, "speech.config was sent before on this connection.")


@pytest.mark.parametrize("message", ["no form", b"\x7f\xffPath:x", "Path: ssml\r\nX-RequestId: " + ID + "\r\n\r\n"])
async def test_malformed_messages_close_the_socket(hearer: Client, message: str | bytes):
    send = hearer.socket.send_str if isinstance(message, str) else hearer.socket.send_bytes
    await send(message)  # type: ignore[operator]

    assert (await hearer.closed())[0] == 1002


@pytest.mark.parametrize(
    ("requested", "reason"),
    [
        ({}, "phraseDetection.mode is required."),
        (context("Whispering"), "phraseDetection.mode is required."),
        ({"phraseDetection": {"mode": "Dictation"}}, "Unsupported language."),
        (context(language="english"), "Unsupported language."),
        (context(language="zh-Hans-CN"), "Unsupported language."),
        (
            context(enrichment={"pronunciationAssessment": {"gradingSystem": "Stars"}}),
            "pronunciationAssessment.gradingSystem is invalid.",
        ),
        ("[]", "speech.context must be a JSON object."),
    ],
)
async def test_wrong_context_closes_the_socket(hearer: Client, requested: Any, reason: str):
    await hearer.say("speech.context", requested)

    assert await hearer.closed() == (1007, reason)


@pytest.mark.parametrize(
    ("audio", "close"),
    [
        (b"no RIFF at all" * 9, (1007, "Unsupported audio format.")),
        (wav_header(16_000, channels=2), (1007, "Unsupported audio format.")),
        (wav_header(16_000) + bytes(8192), (1009, "The message is too large.")),
    ],
)
async def test_wrong_audio_closes_the_socket(hearer: Client, audio: bytes, close: tuple[int, str]):
    await hearer.say("speech.context", context())
    await hearer.say("audio", audio)

    assert await hearer.closed() == close


async def hear(client: Client, requested: dict[str, Any], audio: bytes, turn: str = ID) -> list[Frame]:
    await client.say("speech.context", requested, turn)
    for piece in (wav_header(16_000), *(audio[at : at + 3200] for at in range(0, len(audio), 3200)), b""):
        await client.say("audio", piece, turn)
    return await client.frames()


async def test_interactive_turn_ends_with_its_first_phrase(hearer: Client):
    frames = await hear(hearer, context(), PAUSE + TONE + PAUSE + TONE)

    assert [frame.path for frame in frames if frame.path != "speech.hypothesis"] == [
        "turn.start", "speech.startdetected", "speech.phrase", "speech.enddetected", "turn.end",
    ]  # fmt: skip
    phrase = loads(next(frame.body for frame in frames if frame.path == "speech.phrase"))
    assert {name: phrase[name] for name in ("RecognitionStatus", "DisplayText", "Offset", "Duration")} == {
        "RecognitionStatus": "Success",
        "DisplayText": "good morning",
        "Offset": SECOND,
        "Duration": SECOND,
    }
    assert "NBest" not in phrase
    await hearer.say("telemetry", {})
    assert (await hear(hearer, context("Dictation"), TONE, OTHER))[-1].request_id == OTHER


async def test_the_old_endpoint_requires_a_mode_and_a_connection_id(azure_session: aiohttp.ClientSession):
    path = SHORT.replace("conversation", "interactive")
    async with azure_session.ws_connect(f"{path}?language=en-US&format=detailed") as socket:
        client = Client(socket)
        await client.say("speech.config", {})
        frames = await hear(client, {}, TONE)
    phrase = loads(next(frame.body for frame in frames if frame.path == "speech.phrase"))
    assert [word["Word"] for word in phrase["NBest"][0]["Words"]] == ["good", "morning"]

    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await azure_session.ws_connect(path, headers={"X-ConnectionId": "1-2"})
    assert refused.value.status == 400


async def test_the_key_may_be_a_query_parameter_or_a_token(sandbox: Running):
    async with aiohttp.ClientSession(sandbox.url) as bare:
        voices = "/azure/tts/cognitiveservices/voices/list"
        statuses = []
        for query, headers in (
            ({"Ocp-Apim-Subscription-Key": "k"}, {}),
            ({}, {"Authorization": "Bearer t"}),
            ({}, {}),
            ({}, {"Ocp-Apim-Subscription-Key": "wrong"}),
        ):
            async with bare.get(voices, params=query, headers=headers) as answer:
                statuses.append(answer.status)
    assert statuses == [200, 200, 401, 401]
