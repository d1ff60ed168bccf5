"""In production, only operators learn what is wrong with a config that cannot be used."""

from dataclasses import replace
from secrets import token_hex
from typing import Any

import pytest
from aiohttp import ClientResponse
from structlog.testing import capture_logs

from app.settings import Settings
from storage.configs.kinds import KINDS
from storage.configs.store import open_configs
from storage.operators.audit import COMMAND
from storage.secrets import Keyring
from tests.app.ai.conftest import Talk
from tests.running.servers import ADMIN_TOKEN, Server

HIDDEN = "config_invalid: a config of this app cannot be used; its operator can read why in the log"
FAULT = "config_invalid: vendor_accounts locked: api_key cannot be decrypted"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, env="production")


@pytest.fixture
async def broken(server: Server) -> None:
    """A voice and a strategy whose account is encrypted with a key that the server does not have."""
    account = {"platform": "openai", "api_key": "sk-test"}
    voice = {"account": "locked", "model": "tts-1", "voice": "alloy"}
    sign_keys = {"sign_keys": [{"id": "k", "key": "k" * 32}], "require_sign": True}
    await put_with_another_key(server, "vendor_accounts", "locked", account)
    await put_with_another_key(server, "auth", "default", sign_keys, app_id="other")
    await put(server, "speech", "locked", voice)
    await put(server, "conversation", "locked", {"chat": {"account": "locked", "model": "gpt"}})
    await put(server, "apps", "default", {"playground": True})


async def put(server: Server, kind: str, name: str, value: Any) -> None:
    await server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)


async def put_with_another_key(
    server: Server, kind: str, name: str, value: Any, *, app_id: str = "default"
) -> None:
    services = server.services
    async with open_configs(services.database, services.valkey, Keyring.from_hex(token_hex(32))) as configs:
        if not configs.exists(KINDS["apps"], app_id):
            await configs.put(app_id, "apps", "default", {}, author="test", origin=COMMAND)
        await configs.put(app_id, kind, name, value, author="test", origin=COMMAND)
    await services.configs.refresh()


async def message_of(response: ClientResponse) -> tuple[int, str]:
    return response.status, (await response.json())["error"]["message"]


async def test_a_response_hides_the_fault_and_the_access_line_has_it(
    talk: Talk, server: Server, broken: None
) -> None:
    with capture_logs() as lines:
        async with talk.say("Hello", "locked") as response:
            assert await message_of(response) == (422, HIDDEN)
        other = {"X-Service-App-Id": "other"}
        async with server.http.post(server.url + "/bp/user/login", headers=other, json={}) as response:
            assert await message_of(response) == (422, HIDDEN)
    found = [(line["app_id"], line["error"]) for line in lines if line["event"] == "request"]
    assert found == [
        ("default", FAULT),
        ("other", "config_invalid: auth default: sign_keys[0].key cannot be decrypted"),
    ]


async def test_operators_are_told_the_fault(server: Server, broken: None) -> None:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    path = "/admin/api/configs/default/conversation/draft/try"
    body = {"value": {"chat": {"account": "locked", "model": "gpt"}}, "text": "Hi"}
    async with server.http.post(server.url + path, headers=headers, json=body) as response:
        assert await message_of(response) == (422, FAULT)


async def test_offers_hide_the_fault(talk: Talk, broken: None) -> None:
    async with talk.get("/bp/ai/offers") as response:
        reported = await response.json()
    for kind in ("conversation", "speech"):
        assert [one["fault"] for one in reported[kind] if one["name"] == "locked"] == [HIDDEN]


async def test_events_hide_the_faults_of_attempts_and_of_the_voice(talk: Talk, strategy: Any, broken: None) -> None:
    await strategy("mute", "say:Fine", speech="locked")
    await strategy("refused", "refuse")
    end = (await talk.turn("Hello", "locked", "mute"))[-1]
    assert end.name == "end", end.content
    assert [attempt["message"] for attempt in end.content["attempts"]] == [HIDDEN, HIDDEN]
    assert end.content["speech"]["message"] == HIDDEN
    failed = (await talk.turn("Hello", "locked", "refused"))[-1]
    assert failed.name == "error"
    locked, refused = failed.content["error"]["extra"]["attempts"]
    assert (locked["message"], refused["error_type"]) == (HIDDEN, "backend_unavailable")
