"""A malformed request is refused before the 200. Errors in its input are reported later, by an `error` event."""

import asyncio
import base64
import io
from typing import Any

import pytest

from app.commands.users import make_users
from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.app.ai.conftest import Talk
from tests.peers.sse_client import all_events
from tests.peers.vendor import Vendor
from tests.running.servers import Server

GOOD: dict[str, Any] = {
    "strategies": ["one"],
    "language_code": "en",
    "target_language_code": "en",
    "type": "text",
}


@pytest.fixture
def server(guest: Server) -> Server:
    return guest


@pytest.fixture(autouse=True)
async def _one(strategy, server: Server) -> None:
    account = {"platform": "vendor_b_audio", "base_url": "http://127.0.0.1:9/v1"}
    await server.services.configs.put("default", "vendor_accounts", "ears", account, author="test", origin=COMMAND)
    recognition = {"account": "ears", "model": "whisper-1"}
    await server.services.configs.put("default", "recognition", "ears", recognition, author="test", origin=COMMAND)
    await strategy("one", "say:Fine", recognition="ears")


async def refused(response) -> tuple[int, str, str]:
    async with response as answer:
        error = (await answer.json())["error"]
        assert answer.content_type == "application/json"
        return answer.status, error["error_type"], error["message"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "invalid_parameter: body must contain a complete JSON object of parameters"),
        (b"{", 400, "invalid_parameter: body must contain a complete JSON object of parameters"),
        (b'{"a":}', 400, "invalid_parameter: body is not valid JSON"),
        (b'["one"]', 400, "invalid_parameter: body must begin with a JSON object of parameters"),
        (b"hello", 400, "invalid_parameter: body must begin with a JSON object of parameters"),
        (b'{"a":' + b"[" * 40 + b"]" * 40 + b"}", 400, "invalid_parameter: body is nested deeper than 32 levels"),
        (b'{"a":"' + b"x" * 70_000 + b'"}', 413, "invalid_parameter: the parameters exceed 65536 bytes"),
    ],
)
async def test_malformed_parameters_are_refused(talk: Talk, body: bytes, status: int, message: str) -> None:
    got = await refused(talk.post("/bp/ai/conversation", data=body))
    assert got[:2] == (status, "invalid_parameter")
    assert got[2].startswith(message)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"strategies": None}, "strategies must be a list"),
        ({"strategies": ...}, "strategies is required"),
        ({"strategies": []}, "strategies must not be empty"),
        ({"strategies": ["one", 2]}, "strategies[1] must be a string"),
        ({"language_code": 7}, "language_code must be a string"),
        ({"target_language_code": ...}, "target_language_code is required"),
        ({"type": "video"}, "type must be one of 'text' or 'audio'"),
        ({"params": []}, "params must be an object"),
        ({"conversation_id": 3}, "conversation_id must be a string"),
    ],
)
async def test_wrong_fields_are_named(talk: Talk, change: dict[str, Any], what: str) -> None:
    fields = {name: value for name, value in {**GOOD, **change}.items() if value is not ...}
    got = await refused(talk.post("/bp/ai/conversation", data=dumps(fields) + b"hi"))
    assert got == (400, "invalid_parameter", f"invalid_parameter: {what}")


async def test_error_for_missing_strategies_names_them(talk: Talk) -> None:
    got = await refused(talk.say("hi", "nobody", "nothing\n" + "x" * 100))
    named = f"nobody, nothing {'x' * 56}"
    what = f"item_not_found: conversation strategies {named} do not exist"
    assert got == (404, "item_not_found", what)


async def test_error_for_broken_strategies_names_config_and_field(talk: Talk, server: Server) -> None:
    value = {"chat": {"account": "nowhere", "model": "x"}}
    await server.services.configs.put("default", "conversation", "broken", value, author="test", origin=COMMAND)
    status, error_type, message = await refused(talk.say("hi", "broken"))
    assert (status, error_type) == (422, "config_invalid")
    assert "vendor_accounts nowhere" in message


@pytest.mark.parametrize(
    ("headers", "status", "error_type", "names"),
    [
        ({"X-Service-Session-Token": ""}, 400, "account.invalid_session", "X-Service-Session-Token"),
        ({"X-Service-Session-Token": "st_" + "x" * 49}, 400, "account.invalid_session", "X-Service-Session-Token"),
        ({"X-Service-App-Id": "nobody"}, 400, "app_not_found", "X-Service-App-Id"),
        ({"X-Service-Api-Version": "9"}, 400, "invalid_api_version", "X-Service-Api-Version"),
        ({"Content-Encoding": "gzip"}, 400, "invalid_parameter", "Content-Encoding"),
    ],
)
async def test_headers_are_checked_before_the_body(
    talk: Talk, headers: dict[str, str], status: int, error_type: str, names: str
) -> None:
    got = await refused(talk.post("/bp/ai/conversation", data=b"not even JSON", headers=headers))
    assert got[:2] == (status, error_type)
    assert names in got[2]


async def test_error_for_a_wrong_signature_names_only_its_header(talk: Talk, server: Server) -> None:
    value = {"require_sign": True, "sign_keys": [{"id": "k", "key": "a key of the tests"}]}
    await server.services.configs.put("signed", "apps", "default", {}, author="test", origin=COMMAND)
    await server.services.configs.put("signed", "auth", "default", value, author="test", origin=COMMAND)
    [(_, token)] = await make_users(server.services, "signed", 1)
    sign = {"X-Service-App-Id": "signed", "X-Service-Session-Token": token, "X-Service-Sign": f"t=1,v1={'0' * 64}"}
    got = await refused(talk.post("/bp/ai/conversation", data=talk.params("one") + b"hi", headers=sign))
    assert got == (401, "auth_failed", "auth_failed: X-Service-Sign is missing or wrong")


async def test_other_methods_of_a_path_are_refused(talk: Talk) -> None:
    async with talk.get("/bp/ai/conversation") as response:
        assert response.status == 405
        assert response.headers["Allow"] == "POST"
        assert (await response.json())["error"]["error_type"] == "method_not_allowed"
    async with talk.get("/bp/nothing/here") as response:
        assert response.status == 404
        assert (await response.json())["error"]["error_type"] == "not_found"


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("text", b"", "text is required"),
        ("text", b" \n ", "text is required"),
        ("text", b"gr\xfc\xdfe", "text is not valid UTF-8"),
        ("text", b"half \xf0\x9f", "text is not valid UTF-8"),
        ("text", b"a\x00b", "text must not contain the character U+0000"),
        ("text", b"x" * 33_000, "text exceeds 32768 bytes"),
        ("audio", b"", "audio is required"),
        ("audio", b"AAA*", "audio is not valid base64"),
        ("audio", b"AAAAA", "audio is not valid base64 (chunks must contain multiples of 3 bytes)"),
        ("audio", base64.b64encode(bytes(10 * 1024 * 1024 + 3)), "audio exceeds 10485760 bytes"),
    ],
)
async def test_wrong_input_ends_the_stream_without_a_record_or_a_vendor_call(
    talk: Talk, vendor: Vendor, kind: str, body: bytes, message: str
) -> None:
    whole = io.BytesIO(talk.params("one", type=kind) + body)
    async with talk.post("/bp/ai/conversation", data=whole) as response:
        talk.remember(response)
        seen = await all_events(response)
    assert [event.name for event in seen] == ["start", "error"]
    assert seen[-1].content["error"] == {
        "error_type": "invalid_parameter",
        "message": f"invalid_parameter: {message}",
        "extra": {"retryable": False},
    }
    assert not vendor.calls
    async with talk.get("/bp/ai/conversation/query", params={"conversation_id": talk.conversation_id}) as answer:
        assert answer.status == 404


async def test_a_client_that_still_uploads_receives_the_refusal(talk: Talk) -> None:
    async def endless():
        yield dumps({**GOOD, "type": "video"})
        for _ in range(64):
            yield b"A" * 65_536
            await asyncio.sleep(0)

    got = await refused(talk.post("/bp/ai/conversation", data=endless()))
    assert got[:2] == (400, "invalid_parameter")


async def test_a_client_that_still_uploads_receives_the_error_event(talk: Talk) -> None:
    async def endless():
        yield talk.params("one")
        for _ in range(64):
            yield b"A" * 65_536
            await asyncio.sleep(0)

    async with talk.post("/bp/ai/conversation", data=endless()) as response:
        seen = await all_events(response)
    assert seen[-1].content["error"]["message"] == "invalid_parameter: text exceeds 32768 bytes"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({}, 400),
        ({"conversation_id": "nothing"}, 404),
        ({"conversation_id": "0" * 32}, 404),
        ({"from": "0"}, 400),
        ({"from": "-2"}, 400),
        ({"from": "x"}, 400),
        ({"size": "0"}, 400),
        ({"size": "101"}, 400),
        ({"record_id": "99"}, 404),
        ({"record_id": "99999999999999999999"}, 400),
        ({"record_id": "3000000000"}, 404),
        ({"from": "3000000000"}, 200),
        ({"from": "9" * 40}, 200),
        ({"from": "0" * 40}, 400),
        ({"from": "-" + "9" * 40}, 400),
        ({"size": "9" * 40}, 400),
        ({"record_id": "1", "from": "0", "size": "x"}, 200),
        ({"record_id": "1", "from": "nonsense"}, 200),
        ({"record_id": "", "from": "1"}, 400),
    ],
)
async def test_wrong_history_queries_are_refused(talk: Talk, query: dict[str, str], status: int) -> None:
    await talk.turn("hi", "one")
    if query and "conversation_id" not in query:
        query = {"conversation_id": talk.conversation_id, **query}
    async with talk.get("/bp/ai/conversation/query", params=query) as response:
        assert response.status == status, await response.text()


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"strategies": ["local"]}, 400, "invalid_parameter: text is required"),
        ({"text": " ", "strategies": ["local"]}, 400, "invalid_parameter: text is required"),
        (
            {"text": "x" * 4097, "strategies": ["local"]},
            413,
            "invalid_parameter: text exceeds maximum length limit",
        ),
        ({"text": "x"}, 400, "invalid_parameter: strategies is required"),
        (
            {"text": "x", "strategies": ["nobody"]},
            404,
            "item_not_found: speech strategy nobody does not exist",
        ),
        (
            {"text": "x", "strategies": ["local"], "platform_params": [{"platform": "parrot"}]},
            400,
            "invalid_parameter: platform_params[0].platform must be one of",
        ),
        (
            {
                "text": "x",
                "strategies": ["local"],
                "platform_params": [{"platform": "vendor_c", "speed": 9}],
            },
            400,
            "invalid_parameter: platform_params[0].speed",
        ),
    ],
)
async def test_wrong_speech_requests_are_refused(
    talk: Talk, body: dict[str, Any], status: int, message: str
) -> None:
    got = await refused(talk.post("/bp/ai/audio/tts", json=body))
    assert got[0] == status
    assert got[2].startswith(message), got[2]
