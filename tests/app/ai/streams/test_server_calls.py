"""App servers call on behalf of a user, with a server token (S2S)."""

from streams.wire.ids import new_id
from tests.app.ai.conftest import Talk
from tests.app.ai.speech.speaking_server import module_server, server
from tests.app.callers import token
from tests.peers.sse_client import all_events
from tests.running.servers import Server

__all__ = ["module_server", "server"]


async def test_a_conversation_by_an_app_server_is_in_the_history_of_the_user(talk: Talk, strategy) -> None:
    await strategy("one", "say:Hello there")
    url = f"{talk.server.url}/bp/server/user/{talk.uid}/ai/conversation"
    http = talk.server.http
    async with http.post(url, data=talk.params("one") + b"Hi", headers=token(sub=talk.uid)) as response:
        talk.remember(response)
        assert (await all_events(response))[-1].name == "end"
    assert (await talk.history())["conversation"]["record_count"] == 1
    query = {"conversation_id": talk.conversation_id}
    async with http.get(f"{url}/query", params=query, headers=token(scope="ai account")) as response:
        assert response.status == 200
        assert len((await response.json())["data"]["conversation_records"]) == 1


async def test_an_app_server_can_request_speech(talk: Talk) -> None:
    url = f"{talk.server.url}/bp/server/user/{talk.uid}/ai/audio/tts"
    body = {"text": "Hello", "strategies": ["local"]}
    async with talk.server.http.post(url, json=body, headers=token()) as response:
        assert (await all_events(response))[-1].name == "end"


async def test_an_app_server_is_refused_if_its_token_is_for_another_user_or_scope(
    talk: Talk, server: Server, strategy
) -> None:
    await strategy("one", "say:Hello there")

    async def refusal(user_id: str, headers: dict[str, str]) -> tuple[int, str]:
        url = f"{server.url}/bp/server/user/{user_id}/ai/conversation"
        async with server.http.post(url, data=talk.params("one") + b"Hi", headers=headers) as response:
            return response.status, (await response.json())["error"]["error_type"]

    assert await refusal(talk.uid, {}) == (401, "auth_failed")
    assert await refusal(talk.uid, {"X-Service-Session-Token": talk.token}) == (401, "auth_failed")
    assert await refusal(talk.uid, token(scope="account")) == (403, "permission_denied")
    assert await refusal(talk.uid, token(sub=new_id())) == (403, "permission_denied")
    assert await refusal(new_id(), token()) == (404, "item_not_found")
    assert await refusal("nobody", token()) == (404, "item_not_found")
