"""Valid JSON of unknown shape between the events of vendors: speech is spoken, heard and graded as usual."""

from typing import Any

import pytest

from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.app.ai.conftest import Talk
from tests.app.ai.pronunciation.assessments import assessed, assessment_accounts, params
from tests.app.ai.sandbox_accounts import VOICES, account, chat
from tests.app.ai.speech.ears import coded, ears
from tests.app.ai.speech.speech import audio_of
from tests.peers.sse_client import SeenEvent, all_events, named
from tests.running.servers import Server
from tests.streams.audio.pcm_samples import tone
from tests.streams.audio.phone_files import phone_file
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

ODD: list[Any] = [
    None, 7, "x", [], {}, [{"type": "x"}], {"type": ["speech.audio.delta"]}, {"usage": 7},
    {"type": "speech.audio.delta", "audio": None}, {"type": "transcript.text.delta", "delta": {"x": 1}},
    {"choices": None}, {"choices": [None, {"index": [0], "delta": {"audio": 7}}]},
    {"audio_base64": 5, "alignment": {"characters": ["x"], "character_start_times_seconds": [1e300]}},
    {"RecognitionStatus": ["Success"], "Offset": [1], "Duration": "soon", "NBest": {"Display": "x"}},
    {"Text": {"x": 1}, "PronunciationAssessment": [1]}, {"Words": 7, "NBest": [7]},
    {"Metadata": [None, {"Type": "Viseme", "Data": {"Offset": 1e300, "VisemeId": [1]}}]},
    {"markName": ["w0"], "timeSeconds": 1e300}, {"alternatives": 7}, {"transcript": None},
]  # fmt: skip
ODD_TEXT = dumps(ODD).decode()
TEXT = "Good morning to you. How are you?"
CHAT_VOICE = {"model": "gpt-audio", "voice": "alloy"}


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def voice(server: Server, sandbox: Running, name: str, platform: str, key: str, **fields: Any) -> None:
    await account(server, sandbox, f"{name}-voice", platform, key)
    value = {"account": f"{name}-voice", **VOICES.get(platform, CHAT_VOICE), **fields}
    await server.services.configs.put("default", "speech", name, value, author="test", origin=COMMAND)


async def spoken(talk: Talk, strategy: str) -> list[SeenEvent]:
    async with talk.post("/bp/ai/audio/tts", json={"text": TEXT, "strategies": [strategy]}) as response:
        seen = await all_events(response)
    assert seen[-1].name == "end", seen[-1]
    return seen


@pytest.mark.parametrize("audio_format", ["mp3", "wav"])
@pytest.mark.parametrize("platform", [*VOICES, "vendor_b_llm"])
async def test_a_text_is_spoken_as_usual(
    talk: Talk, server: Server, sandbox: Running, platform: str, audio_format: str
) -> None:
    fields = {"need_viseme": True, "audio_format": audio_format}
    await voice(server, sandbox, "usual", platform, "sandbox", **fields)
    await voice(server, sandbox, "odd", platform, key_of(odd=ODD_TEXT), **fields)

    usual, odd = await spoken(talk, "usual"), await spoken(talk, "odd")

    assert audio_of(named(odd, "audio_chunk")) == audio_of(named(usual, "audio_chunk")) != b""
    shapes = [[shape for event in named(seen, "viseme") for shape in event["visemes"]] for seen in (usual, odd)]
    assert shapes[0] == shapes[1] != []


@pytest.mark.parametrize(
    ("recognizer", "audio"),
    [
        (("vendor_a_audio", ""), tone(1)),
        (("vendor_a_audio", ""), phone_file("opus", seconds=1)),
        (("vendor_b_audio", "whisper-1"), tone(1)),
        (("vendor_b_audio", "gpt-4o-mini-transcribe"), tone(1)),
        (("vendor_d_audio", ""), tone(1)),
    ],
    ids=["azure's socket", "azure", "whisper", "streamed", "google"],
)
async def test_a_user_is_heard_and_answered_as_usual(
    talk: Talk, server: Server, sandbox: Running, recognizer: tuple[str, str], audio: bytes
) -> None:
    key = key_of(odd=ODD_TEXT, text="Where is my parcel?")
    await ears(server, sandbox, "one", recognizer[0], key, model=recognizer[1])
    words = key_of(odd=ODD_TEXT, text=TEXT)
    await chat(server, sandbox, "one", "vendor_b_llm", words, recognition="one", speech="one")
    await voice(server, sandbox, "one", "vendor_b_audio", key_of(odd=ODD_TEXT))

    async with talk.post("/bp/ai/conversation", data=talk.params("one", type="audio") + coded(audio)) as response:
        seen = await all_events(response)

    assert seen[-1].name == "end", seen[-1]
    assert named(seen, "user_input") == ["Where is my parcel?"]
    assert "".join(chunk["text"] for chunk in named(seen, "assistant_output_chunk")) == TEXT
    assert "speech" not in seen[-1].content
    assert audio_of(named(seen, "assistant_output_audio_chunk"))


async def test_an_assessment_has_the_usual_grades(talk: Talk, server: Server, sandbox: Running) -> None:
    body = params(enable_miscue=True) + coded(tone(1.2))
    await assessment_accounts(server, sandbox)
    usual = await assessed(talk, body)
    await assessment_accounts(server, sandbox, key_of(odd=ODD_TEXT))

    odd = await assessed(talk, body)

    assert odd["text"] == usual["text"]
    assert [best["PronunciationAssessment"] for best in odd["raw_data"]["NBest"]] == [
        best["PronunciationAssessment"] for best in usual["raw_data"]["NBest"]
    ]
