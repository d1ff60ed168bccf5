"""How often calls are sent if the sandbox resets connections."""

from typing import Any

import pytest
from pydantic import SecretStr

from streams.input_buffer import InputBuffer
from streams.wire.codec import dumps
from tests.vendors.sandbox_calls import calls, outcome
from vendors.account import Account, AssessmentSpec, ChatSpec, RecognitionSpec, SpeechSpec
from vendors.catalog import ASSESSORS, CATALOG, CHAT_MODELS, RECOGNIZERS, SYNTHESIZERS
from vendors.errors import Unreachable
from vendors.http.outgoing import MoneyCall, Outgoing, ReadCall, Repeat, RepeatWithKey
from vendors.http.transport import VendorHttp
from vendors.protocols import AssessmentRequest, AudioFormat, ChatMessage
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

RESETS = key_of(fault="refuse")
ROOTS = {
    "vendor_a_audio": "/azure",
    "vendor_b_audio": "/openai/v1",
    "vendor_b_llm": "/openai/v1",
    "vendor_c": "/elevenlabs",
    "vendor_d_audio": "/google",
    "anthropic": "/anthropic",
    "gemini": "/gemini/v1beta",
}
REMOTE = [
    (capability, platform)
    for capability in (CHAT_MODELS, RECOGNIZERS, SYNTHESIZERS, ASSESSORS)
    for platform in capability.vendors
    if not CATALOG[platform].local
]


def buffered() -> InputBuffer:
    full = InputBuffer()
    full.write(b"\1\2" * 16_000)
    full.end()
    return full


SPECS: dict[str, Any] = {
    "chat": ChatSpec("gemini-2.5-flash"),
    "recognition": RecognitionSpec("m"),
    "speech": SpeechSpec("m", voice="en-US-Neural2-C"),
    "assessment": AssessmentSpec(),
}
USES: dict[str, Any] = {
    "chat": lambda client: client.reply([ChatMessage("user", "Hello")]),
    "recognition": lambda client: client.transcribe(buffered(), AudioFormat("audio/pcm", 16_000)),
    "speech": lambda client: client.speak("Hello"),
    "assessment": lambda client: client.assess(buffered(), AssessmentRequest("Hello")),
}


@pytest.mark.parametrize(
    ("capability", "platform"), REMOTE, ids=[f"{platform}-{capability.name}" for capability, platform in REMOTE]
)
async def test_every_idempotent_call_is_retried_once(
    http: VendorHttp, sandbox: Running, capability: Any, platform: str
):
    account = Account("main", platform, sandbox.url + ROOTS[platform], SecretStr(RESETS))
    client = capability.vendors[platform].client(http, account, SPECS[capability.name])

    found = await outcome(USES[capability.name](client))

    assert isinstance(found.error, Unreachable)
    assert [entry.fault for entry in calls(sandbox)] == ["refuse", "refuse"]


def chat(sandbox: Running, key: str = RESETS, **fields: Any) -> Outgoing:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    body = dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Hello"}]})
    return Outgoing("acme", f"{sandbox.url}/openai/v1/chat/completions", headers=headers, body=body, **fields)


@pytest.mark.parametrize(
    ("fields", "times"),
    [
        ({}, 1),
        ({"repeat": Repeat.NEVER}, 1),
        ({"repeat": Repeat.SAFE}, 2),
        ({"repeat": RepeatWithKey("7:capture")}, 2),
    ],
)
async def test_call_is_repeated_only_if_its_repeat_allows_it(
    http: VendorHttp, sandbox: Running, fields: dict[str, Any], times: int
):
    with pytest.raises(Unreachable):
        async with http.stream(chat(sandbox, **fields)):
            pass

    assert len(calls(sandbox)) == times


async def test_repeated_call_may_succeed(http: VendorHttp, sandbox: Running):
    once = key_of(fault="refuse", times=1)

    async with http.stream(chat(sandbox, once, repeat=Repeat.SAFE)) as response:
        assert (await response.json())["object"] == "chat.completion"

    assert [entry.fault for entry in calls(sandbox)] == ["refuse", None]


async def test_read_is_repeated(http: VendorHttp, sandbox: Running):
    with pytest.raises(Unreachable):
        async with http.stream(
            ReadCall("acme", f"{sandbox.url}/openai/v1/models", headers={"Authorization": f"Bearer {RESETS}"})
        ):
            pass

    assert [entry.stage for entry in calls(sandbox)] == ["models", "models"]


def test_call_that_moves_money_needs_a_key():
    with pytest.raises(TypeError, match="repeat"):
        MoneyCall(vendor="acme", url="http://127.0.0.1:9/")
    with pytest.raises(ValueError, match="key must not be empty"):
        RepeatWithKey("")
