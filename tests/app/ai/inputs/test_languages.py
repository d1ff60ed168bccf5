"""Language tags as phones send them, in requests whose vendors accept only their own codes."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.app.ai.conftest import Talk
from tests.app.ai.pronunciation.assessments import PATH, assessment_accounts
from tests.app.ai.pronunciation.assessments import params as assessment
from tests.app.ai.sandbox_accounts import VOICES, account, chat
from tests.peers.sse_client import SeenEvent, all_events
from tests.running.servers import Server
from vendors.sandbox.server import Running

SPOKEN = base64.b64encode(b"\1\x40" * 16_000)


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def put(server: Server, kind: str, name: str, **value: Any) -> None:
    await server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)


@pytest.fixture
async def listening(talk: Talk, server: Server, sandbox: Running) -> Talk:
    """A user of a strategy `one` whose recognition is `ears`."""
    await account(server, sandbox, "ears", "vendor_a_audio")
    await put(server, "recognition", "ears", account="ears")
    await chat(server, sandbox, "one", "vendor_b_llm", recognition="ears")
    return talk


async def heard(talk: Talk, code: str, *strategies: str) -> list[SeenEvent]:
    body = talk.params(*strategies, type="audio", language_code=code) + SPOKEN
    async with talk.post("/bp/ai/conversation", data=body) as response:
        return await all_events(response)


async def spoken(talk: Talk, platform: str, code: str, *strategies: str) -> list[SeenEvent]:
    overrides = [{"platform": platform, "language_code": code}]
    body = {"text": "Good morning.", "strategies": strategies, "platform_params": overrides}
    async with talk.post("/bp/ai/audio/tts", json=body) as response:
        return await all_events(response)


def asked(sandbox: Running, stage: str, find: Callable[[dict[str, Any]], Any]) -> list[Any]:
    return [find(call.asked) for call in sandbox.bill.since(0) if call.stage == stage]


@pytest.mark.parametrize(
    ("ears", "code", "received"),
    [
        (("vendor_a_audio", ""), "zh-Hans-CN", "zh-CN"),
        (("vendor_a_audio", ""), "es-419", "es-MX"),
        (("vendor_a_audio", ""), "iw-IL", "he-IL"),
        (("vendor_d_audio", ""), "zh-Hant-TW", "cmn-Hant-TW"),
        (("vendor_a_audio", ""), "th_TH_TH_#u-nu-thai", "th-TH"),
        (("vendor_d_audio", ""), "he_IL", "iw-IL"),
        (("vendor_d_audio", ""), "zh-CHT", "cmn-Hant-TW"),
        (("vendor_b_audio", "whisper-1"), "en-USA", "en"),
        (("vendor_b_audio", "whisper-1"), "yue-Hant-HK", "zh"),
        (("vendor_b_audio", "whisper-1"), "jv_ID", "jw"),
        (("vendor_b_audio", "whisper-1"), "pa-Arab-PK", "pa"),
        (("vendor_b_audio", "gpt-4o-transcribe"), "mul", None),
    ],
)
async def test_the_tag_of_a_phone_is_recognized(
    listening: Talk, sandbox: Running, ears: tuple[str, str], code: str, received: str | None
) -> None:
    platform, model = ears
    server = listening.server
    await account(server, sandbox, "ears", platform)
    await put(server, "recognition", "ears", account="ears", **({"model": model} if model else {}))
    seen = await heard(listening, code, "one")
    assert seen[-1].name == "end", seen[-1]
    assert asked(sandbox, "stt", lambda call: call.get("language")) == [received]


@pytest.mark.parametrize(
    ("platform", "changes", "code"),
    [
        ("vendor_d_audio", {"voice": ""}, "zh-Hans-CN"),
        ("vendor_c", {}, "in-ID"),
        ("vendor_c", {}, "tl-PH"),
        ("vendor_c", {}, "und"),
    ],
)
async def test_the_tag_of_a_phone_is_spoken(
    talk: Talk, sandbox: Running, platform: str, changes: dict[str, str], code: str
) -> None:
    await account(talk.server, sandbox, "voice", platform)
    await put(talk.server, "speech", "one", account="voice", **{**VOICES[platform], **changes})
    seen = await spoken(talk, platform, code, "one")
    assert seen[-1].name == "end", seen[-1]


async def test_the_tag_of_a_phone_is_assessed(talk: Talk, server: Server, sandbox: Running) -> None:
    await assessment_accounts(server, sandbox, languages=["zh-TW"])
    async with talk.post(PATH, data=assessment(language="zh-Hant-TW") + SPOKEN) as response:
        assert response.status == 200, await response.text()
    [detection] = asked(sandbox, "assess", lambda call: call["context"]["phraseDetection"])
    assert detection["language"] == "zh-TW"


async def test_a_config_for_a_language_accepts_its_tags(talk: Talk, server: Server, sandbox: Running) -> None:
    await account(server, sandbox, "voice", "vendor_c")
    await put(
        server,
        "speech",
        "one",
        account="voice",
        languages=["he", "zh-TW"],
        **{**VOICES["vendor_c"], "model": "eleven_v3"},
    )
    for code in ("iw-IL", "zh-Hant-TW"):
        assert (await spoken(talk, "vendor_c", code, "one"))[-1].name == "end"
    refused = (await spoken(talk, "vendor_c", "zh-Hans-CN", "one"))[-1].content["error"]
    assert refused["extra"]["attempts"][0]["message"] == (
        "invalid_parameter: language_code zh-Hans-CN is not one of he, zh-TW"
    )


async def test_a_language_that_a_vendor_lacks_is_a_failed_attempt(
    talk: Talk, server: Server, sandbox: Running
) -> None:
    await account(server, sandbox, "flash", "vendor_c")
    await put(server, "speech", "flash", account="flash", **VOICES["vendor_c"])
    await put(server, "speech", "v3", account="flash", **{**VOICES["vendor_c"], "model": "eleven_v3"})
    assert (await spoken(talk, "vendor_c", "iw-IL", "flash", "v3"))[-1].content["strategy"] == "v3"
    error = (await spoken(talk, "vendor_c", "iw-IL", "flash"))[-1].content["error"]
    assert (error["error_type"], error["extra"]["retryable"]) == ("all_strategies_failed", False)
    assert error["extra"]["attempts"][0]["message"] == (
        "invalid_parameter: language_code iw-IL is not offered by vendor_c"
    )


async def test_a_vendor_of_another_script_is_not_asked_for_its_own_code(
    listening: Talk, server: Server, sandbox: Running
) -> None:
    await account(server, sandbox, "whisper", "vendor_b_audio")
    await put(server, "recognition", "whisper", account="whisper", model="whisper-1")
    await chat(server, sandbox, "two", "vendor_b_llm", recognition="whisper")
    seen = await heard(listening, "pa-Arab-PK", "one", "two")
    assert seen[-1].name == "end", seen[-1]
    refused, answered = asked(sandbox, "stt", lambda call: call.get("language"))
    assert (refused, answered) == (None, "pa")  # The first vendor got a code that it does not know.


TURN = {"strategies": ["a"], "type": "text", "language_code": "en", "target_language_code": "en"}
OVERRIDE = {"platform": "vendor_c", "language_code": "-de"}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("conversation", {**TURN, "language_code": "english"}, "language_code"),
        ("conversation", {**TURN, "target_language_code": "en--US"}, "target_language_code"),
        (
            "audio/pronunciation",
            {"strategy": "a", "data": {"reference_text": "Hi", "language": "en-a"}},
            "language",
        ),
        (
            "audio/tts",
            {"text": "Hi", "strategies": ["a"], "platform_params": [OVERRIDE]},
            "platform_params[0].language_code",
        ),
    ],
)
async def test_a_malformed_tag_names_its_field(talk: Talk, path: str, body: dict[str, Any], field: str) -> None:
    async with talk.post(f"/bp/ai/{path}", json=body) as response:
        message = (await response.json())["error"]["message"]
    assert (response.status, message) == (400, f"invalid_parameter: {field} must be a language code such as en-US")
