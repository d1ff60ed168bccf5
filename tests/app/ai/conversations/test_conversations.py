"""A user's conversations are listed newest first, and deleted with their records and audio."""

from tests.app.ai.conftest import Talk
from tests.app.ai.speech.speaking_server import module_server, server
from tests.peers.sse_client import all_events, events
from tests.peers.vendor import Vendor
from tests.running.servers import Server

__all__ = ["module_server", "server"]


async def page(talk: Talk, **query: str) -> dict:
    async with talk.get("/bp/ai/conversations", params=query) as response:
        answer = await response.json()
        assert response.status == 200, answer
        return answer


async def listed(talk: Talk) -> list[dict]:
    return (await page(talk))["conversations"]


async def delete(talk: Talk, conversation_id: str, **more: str) -> tuple[int, str]:
    headers = {"X-Service-Session-Token": talk.token, **more}
    url = f"{talk.server.url}/bp/ai/conversation/{conversation_id}"
    async with talk.server.http.delete(url, headers=headers) as response:
        return response.status, await response.text()


async def test_conversations_are_listed_with_their_first_words(talk: Talk, strategy, server: Server) -> None:
    await strategy("one", "say:Fine")
    ids = []
    for words in ("first " * 30, "second", "third"):
        talk.conversation_id = ""
        await talk.turn(words, "one")
        ids.append(talk.conversation_id)
    talk.conversation_id = ids[0]
    await talk.turn("again", "one")
    found = await listed(talk)
    assert [one["conversation_id"] for one in found] == [ids[0], ids[2], ids[1]]
    assert found[0]["first_words"] == ("first " * 30)[:80]
    assert (found[0]["record_count"], found[0]["status"]) == (2, "normal")
    first = await page(talk, size="1")
    second = await page(talk, size="1", before=first["next"])
    rest = await page(talk, size="1", before=second["next"])
    pages = [[one["conversation_id"] for one in listing["conversations"]] for listing in (first, second, rest)]
    assert pages == [[ids[0]], [ids[2]], [ids[1]]]
    assert "next" not in rest
    async with talk.get("/bp/ai/conversations", params={"before": ids[0]}) as response:
        refused = (response.status, (await response.json())["error"]["message"])
        assert refused == (400, "invalid_parameter: before must be `next` of a page of this list")
    uid, token = await server.login()
    assert await listed(Talk(server, uid, token)) == []


async def test_repeated_deletion_under_a_key_has_the_same_answer(talk: Talk, strategy) -> None:
    await strategy("one", "say:Fine")
    await talk.turn("Hello", "one")
    key = {"Idempotency-Key": "delete-1"}
    for _ in range(2):
        assert await delete(talk, talk.conversation_id, **key) == (200, "{}")
    assert (await delete(talk, talk.conversation_id))[0] == 404


async def test_deleting_a_conversation_deletes_its_records_and_audio(talk: Talk) -> None:
    await talk.turn("Hello", "scripted")
    record = (await talk.history())["conversation_records"][0]
    url = next(item["audio_url"]["url"] for item in record["content"][1]["content"] if item["type"] == "audio_url")
    async with talk.server.http.get(url) as response:
        assert response.status == 200
    assert await delete(talk, talk.conversation_id) == (200, "{}")
    async with talk.server.http.get(url) as response:
        assert response.status == 404
    assert (await delete(talk, talk.conversation_id))[0] == 404
    async with talk.get("/bp/ai/conversation/query", params={"conversation_id": talk.conversation_id}) as response:
        assert response.status == 404
    assert await listed(talk) == []


async def test_the_streams_of_a_deleted_conversation_cannot_be_read(talk: Talk, strategy) -> None:
    await strategy("one", "say:Fine")
    streams = {}
    for words in ("stays", "goes", "goes again"):
        if words != "goes again":
            talk.conversation_id = ""
        async with talk.say(words, "one") as response:
            talk.remember(response)
            assert (await all_events(response))[-1].name == "end"
            streams[words] = response.headers["X-Service-Stream-Id"]

    async def read(words: str) -> int:
        async with talk.get(f"/bp/ai/stream/{streams[words]}") as response:
            return response.status

    assert [await read(words) for words in streams] == [200, 200, 200]
    assert (await delete(talk, talk.conversation_id))[0] == 200
    assert [await read(words) for words in streams] == [200, 404, 404]


async def test_only_its_user_deletes_a_conversation_without_a_running_turn(
    talk: Talk, strategy, server: Server, vendor: Vendor
) -> None:
    await strategy("slow", "slow:Once upon")
    uid, token = await server.login()
    async with talk.say("go", "slow") as response:
        talk.remember(response)
        reader = events(response)
        while (await anext(reader)).name != "assistant_output_chunk":
            pass
        assert (await delete(talk, talk.conversation_id))[0] == 409
        assert (await delete(Talk(server, uid, token), talk.conversation_id))[0] == 404
        vendor.release.set()
        assert [event async for event in reader][-1].name == "end"
    assert (await delete(Talk(server, uid, token), talk.conversation_id))[0] == 404
    assert (await delete(talk, talk.conversation_id))[0] == 200
    assert (await delete(talk, "nothing"))[0] == 404
