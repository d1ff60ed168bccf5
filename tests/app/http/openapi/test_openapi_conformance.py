"""Errors, replies and events of the server conform to its OpenAPI document."""

import json  # noqa: TID251 - an independent reader
from typing import Any

import pytest
from aiohttp import ClientResponse

from app.http.callers.tokens import make_server_token
from storage.operators.audit import COMMAND
from tests.app.reference import Document, Operation, check, check_events
from tests.peers.sse_client import all_events, named
from tests.running.servers import ADMIN_TOKEN, SERVER_KEY, Server

CONVERSATION, TTS = "/bp/ai/conversation", "/bp/ai/audio/tts"
ONE_CONFIG = "/admin/api/configs/{app}/{kind}/{name}"
ADMIN = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
UNKNOWN = "0" * 32


@pytest.fixture
async def document(server: Server) -> Document:
    async with server.http.get(f"{server.url}/openapi.json") as response:
        return json.loads(await response.read())


async def _is_told(document: Document, operation: Operation, response: ClientResponse) -> dict[str, Any]:
    """Return the response body. The operation must document its status, headers and schema."""
    reported = operation["responses"][str(response.status)]
    assert response.content_type in reported["content"]
    described = reported["content"][response.content_type]
    assert all(name in response.headers for name in reported.get("headers", {}) if name != "Retry-After")
    answer = json.loads(await response.read())
    check(document, described["schema"], answer)
    return answer


def _server_token(**claims: Any) -> dict[str, str]:
    token = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default", **claims)
    return {"X-Service-Auth-Token": token}


async def _refused(
    server: Server, document: Document, method: str, path: str, *, status: int, kind: str, **options: Any
) -> None:
    values = options.pop("values", {})
    async with server.http.request(method, server.url + path.format(**values), **options) as response:
        operation = document["paths"][path][method.lower()]
        answer = await _is_told(document, operation, response)
        assert (response.status, answer["error"]["error_type"]) == (status, kind)
        if "Retry-After" in response.headers:
            assert "Retry-After" in operation["responses"][str(status)]["headers"]


async def test_error_responses_are_documented(server: Server, document: Document) -> None:
    _, token = await server.login()
    session = {"X-Service-Session-Token": token}

    async def refused(method: str, path: str, status: int, kind: str, **options: Any) -> None:
        await _refused(server, document, method, path, status=status, kind=kind, **options)

    login, logout, me = "/bp/user/login", "/bp/user/logout", "/bp/user/me"
    await refused("POST", login, 400, "invalid_parameter", json={})
    await refused("POST", login, 400, "invalid_parameter", json=[])
    await refused("POST", login, 413, "invalid_parameter", data=b" " * 200_000)
    await refused("POST", login, 422, "config_invalid", json={"microblog": {"access_token": "x"}})
    await refused("POST", login, 400, "invalid_api_version", headers={"X-Service-Api-Version": "2"})
    await refused("POST", login, 400, "app_not_found", headers={"X-Service-App-Id": "other"})
    await refused("POST", logout, 400, "account.invalid_session")
    await refused("GET", me, 400, "invalid_parameter", headers={**session, "Content-Encoding": "gzip"})

    s2s_user, s2s_tts = "/bp/server/user/{user_id}", "/bp/server/user/{user_id}/ai/audio/tts"
    user = {"values": {"user_id": UNKNOWN}}
    await refused("GET", s2s_user, 401, "auth_failed", **user)
    await refused("GET", s2s_user, 404, "not_found", headers=_server_token(), **user)
    await refused("GET", s2s_user, 403, "permission_denied", headers=_server_token(scope="ai"), **user)
    await refused("GET", s2s_user, 403, "permission_denied", headers=session, **user)
    body = {"text": "Hello", "strategies": ["none"]}
    await refused("POST", s2s_tts, 404, "item_not_found", headers=_server_token(), json=body, **user)

    await refused("POST", TTS, 404, "item_not_found", headers=session, json=body)
    await refused("POST", TTS, 413, "invalid_parameter", headers=session, json={**body, "text": "x" * 5_000})
    await refused("POST", CONVERSATION, 400, "invalid_parameter", headers=session, data=b"{}")
    await refused("POST", CONVERSATION, 413, "invalid_parameter", headers=session, data=b'{"a":' + b" " * 70_000)
    history = f"{CONVERSATION}/query"
    await refused("GET", history, 400, "invalid_parameter", headers=session)
    await refused("GET", history, 404, "item_not_found", headers=session, params={"conversation_id": UNKNOWN})

    voice = {"values": {"app": "default", "kind": "speech", "name": "calm"}}
    await refused("GET", ONE_CONFIG, 401, "auth_failed", **voice)
    await refused("GET", ONE_CONFIG, 404, "item_not_found", headers=ADMIN, **voice)
    matching = {**ADMIN, "If-Match": "7"}
    await refused("PUT", ONE_CONFIG, 412, "invalid_operation", headers=matching, json={"value": {}}, **voice)
    await refused("PUT", ONE_CONFIG, 400, "invalid_parameter", headers=ADMIN, json={"value": {}}, **voice)
    await refused("GET", "/files/{key}", 404, "item_not_found", values={"key": "none.mp3"})


async def test_a_draining_server_reports_its_state(server: Server, document: Document) -> None:
    _, token = await server.login()
    configs = server.services.configs
    account = {"platform": "local_audio", "base_url": "http://127.0.0.1:9/v1"}
    await configs.put("default", "vendor_accounts", "far", account, author="test", origin=COMMAND)
    await configs.put(
        "default", "speech", "calm", {"account": "far", "model": "espeak"}, author="test", origin=COMMAND
    )
    server.services.supervisor.draining = True
    requested = {"headers": {"X-Service-Session-Token": token}, "json": {"text": "Hello", "strategies": ["calm"]}}
    await _refused(server, document, "POST", TTS, status=503, kind="backend unavailable", **requested)


async def test_replies_match_the_documented_schema(server: Server, document: Document) -> None:
    uid, token = await server.login()
    session = {"X-Service-Session-Token": token}
    voice = {"app": "default", "kind": "speech", "name": "local"}
    requested: list[tuple[str, dict[str, str], dict[str, str]]] = [
        ("/bp/user/me", {}, session),
        ("/bp/server/user/{user_id}", {"user_id": uid}, _server_token()),
        ("/admin/api/kinds", {}, ADMIN),
        ("/admin/api/configs", {}, ADMIN),
        (ONE_CONFIG, voice, ADMIN),
        (f"{ONE_CONFIG}/revisions", voice, ADMIN),
    ]
    for path, values, headers in requested:
        async with server.http.get(server.url + path.format(**values), headers=headers) as response:
            assert response.status == 200, path
            await _is_told(document, document["paths"][path]["get"], response)


@pytest.mark.usefixtures("local_vendors")
async def test_example_requests_get_streams_of_documented_events(server: Server, document: Document) -> None:
    _, token = await server.login()
    headers = {"X-Service-Session-Token": token}
    outcomes = {}
    for path in (CONVERSATION, TTS):
        operation = document["paths"][path]["post"]
        (described,) = operation["requestBody"]["content"].values()
        for what, example in described["examples"].items():
            value = example["value"]
            body = value if isinstance(value, str) else json.dumps(value)
            async with server.http.post(server.url + path, data=body.encode(), headers=headers) as response:
                reported = operation["responses"]["200"]["headers"]
                assert {"X-Request-Id", "X-Service-Stream-Id"} <= reported.keys()
                assert all(name in response.headers for name in reported)
                seen = await all_events(response)
            check_events(document, operation, seen)
            outcomes[what.partition(":")[0]] = seen
    assert {what: seen[-1].name for what, seen in outcomes.items()} == {
        "Text": "end",
        "Audio": "error",  # The audio is too short to contain a word.
        "A text and the names of strategies": "end",
        "With mouth shapes": "end",
    }
    assert named(outcomes["Text"], "assistant_output_audio")
    assert named(outcomes["With mouth shapes"], "viseme")
    conversation_id = outcomes["Text"][-1].content["conversation_id"]
    path = f"{CONVERSATION}/query"
    params = {"conversation_id": conversation_id}
    async with server.http.get(server.url + path, params=params, headers=headers) as response:
        await _is_told(document, document["paths"][path]["get"], response)
