"""Sign-in, signatures, turns with text, and errors of the TypeScript client."""

import pytest

from tests.browser.unreliable_proxy import UnreliableProxy
from tests.clients.typescript.conftest import PROMPT, Configure
from tests.clients.typescript.program import ClientError, Program
from tests.peers.vendor import Vendor
from tests.running.servers import Server

KEY = "k-apps-" + "k" * 32
LANGUAGE = {"languageCode": "en-US"}


async def test_a_user_signs_in_and_talks_with_signed_requests(
    program: Program, server: Server, configure: Configure, strategy: Configure
) -> None:
    keys = [{"id": "one", "key": KEY}]
    await configure("auth", "default", {"require_sign": True, "require_nonce": True, "sign_keys": keys})
    await strategy("hello", "say:Hello there, café!")
    await program.do("client", name="user", url=server.url, options={"signKey": KEY}, stored=True)
    user = await program.call("signIn", "device", {"id": "phone é"}, {"platform": "ios"})
    session = await program.call("session")
    assert (session["uid"], session["token"]) == (user["uid"], user["session"]["session_token"])
    assert (await program.call("user"))["uid"] == user["uid"]
    turn = program.read(options={"strategies": ["hello"], "text": "Good mörning", **LANGUAGE})
    result = await turn.ended()
    assert turn.names()[:2] == ["start", "user_input"]
    assert result["text"] == "Hello there, café!"
    assert result["end"]["finish_reason"] == "stop"
    assert result["end"]["conversation_id"] == result["conversationId"]
    await program.call("signOut")
    assert await program.call("session") is None
    with pytest.raises(ClientError) as raised:
        await program.read(options={"strategies": ["hello"], "text": "Hi", **LANGUAGE}).ended()
    assert raised.value.error["errorType"] == "account.invalid_session"


async def test_a_turn_continues_its_conversation_with_the_values_of_its_prompt(
    user: Program, strategy: Configure, vendor: Vendor
) -> None:
    await strategy("named", "say:Hello", chat={"system_prompt": "You are {{.name}}."})
    first = await user.read(options={"strategies": ["named"], "text": "One", **LANGUAGE}).ended()
    options = {"conversationId": first["conversationId"], "params": {"name": "Ada"}, "targetLanguageCode": "de-DE"}
    second = await user.read(options={"strategies": ["named"], "text": "Two", **LANGUAGE, **options}).ended()
    assert second["conversationId"] == first["conversationId"]
    assert second["end"]["record_id"] == 2
    contents = [message["content"] for message in vendor.calls[-1]["messages"]]
    assert contents == ["You are Ada.", "One", "Hello", "Two"]


async def test_a_client_needs_neither_streams_nor_other_parts_of_new_environments(
    program: Program, server: Server, configure: Configure, strategy: Configure
) -> None:
    await configure("auth", "default", {"require_sign": True, "sign_keys": [{"id": "one", "key": KEY}]})
    await strategy("hello", "say:Hello there")
    await program.do("forgetStreams")
    await program.do("client", name="user", url=server.url, complete=True, options={"signKey": KEY})
    await program.call("signIn", "device", {"id": "phone"})
    turn = program.read(options={"strategies": ["hello"], **LANGUAGE}, says="text")
    await program.do("piece", piece="Good ")
    await program.do("piece", piece="morning")
    await program.do("piece")
    result = await turn.ended()
    assert (result["text"], result["userInput"]) == ("Hello there", "Good morning")


async def test_errors_say_what_is_wrong(user: Program, strategy: Configure, server: Server) -> None:
    with pytest.raises(ClientError) as raised:
        await user.read(options={"strategies": ["missing"], "text": "Hi", **LANGUAGE}).ended()
    error = raised.value.error
    assert (error["name"], error["errorType"], error["status"]) == ("ParleyError", "item_not_found", 404)
    assert error["message"].startswith("item_not_found: ")
    assert error["requestId"]
    assert not error["retryable"]
    await strategy("broken", "refuse:500")
    with pytest.raises(ClientError) as raised:
        await user.read(options={"strategies": ["broken"], "text": "Hi", **LANGUAGE}).ended()
    error = raised.value.error
    assert (error["errorType"], error["status"]) == ("all_strategies_failed", None)
    assert error["retryable"] == error["extra"]["retryable"]
    assert error["extra"]["attempts"][0]["error_type"] == "backend_unavailable"


async def test_a_server_of_another_kind_is_not_understood(program: Program, vendor: Vendor) -> None:
    await program.do("client", name="user", url=vendor.url)
    with pytest.raises(ClientError) as raised:
        await program.call("signIn", "device", {"id": "phone"})
    error = raised.value.error
    assert (error["name"], error["errorType"], error["status"]) == ("NotUnderstood", "not_understood", 404)


async def test_a_session_that_has_ended_is_renewed_once_and_the_request_repeated(
    program: Program, server: Server, strategy: Configure
) -> None:
    await strategy("hello", "say:Hello")
    again = ["device", {"id": "phone"}]
    await program.do("client", name="user", url=server.url, again=again)
    await program.call("signIn", *again)
    before = await program.call("session")
    await log_out(server, before["token"])
    turns = [
        program.read(name=name, options={"strategies": ["hello"], "text": "Hi", **LANGUAGE})
        for name in ("one", "two")
    ]
    assert [(await turn.ended())["text"] for turn in turns] == ["Hello", "Hello"]
    after = await program.call("session")
    assert after["uid"] == before["uid"]
    assert await sessions_of(server, after["token"]) == 1


async def test_a_session_that_ends_in_mid_conversation_is_renewed(
    program: Program, server: Server, proxy: UnreliableProxy, strategy: Configure, vendor: Vendor
) -> None:
    """It ends between two turns, and again while the stream of the second one is cut."""
    await strategy("hello", "say:Hello")
    await strategy("slow", "slow:Once upon a time")
    again = ["device", {"id": "phone"}]
    await program.do("client", name="user", url=proxy.url, again=again, options={"backoff": PROMPT})
    await program.call("signIn", *again)
    first = await program.read(options={"strategies": ["hello"], "text": "Hi", **LANGUAGE}).ended()
    tokens = [await end_session(program, server)]
    options = {"strategies": ["slow"], "text": "A story", "conversationId": first["conversationId"], **LANGUAGE}
    turn = program.read(options=options)
    await turn.text("Once upon a time")
    tokens.append(await end_session(program, server))
    proxy.cut()
    vendor.release.set()
    second = await turn.ended()
    tokens.append((await program.call("session"))["token"])
    assert len(set(tokens)) == 3
    assert (second["text"], second["end"]["record_id"]) == ("Once upon a time", 2)
    assert second["end"]["finish_reason"] == "stop"
    assert [state for state, _ in second["connections"]] == ["open", "lost", "open", "none"]
    assert len(vendor.calls) == 2


async def end_session(program: Program, server: Server) -> str:
    token: str = (await program.call("session"))["token"]
    await log_out(server, token)
    return token


async def test_a_session_is_renewed_by_the_token_of_the_last_sign_in(program: Program, server: Server) -> None:
    await program.do("client", name="user", url=server.url)
    await program.call("signIn", "android_games_service", {"player_id": "p-1"})
    session = await program.call("session")
    await program.do("client", name="later", url=server.url, options={"session": {**session, "token": "st_ended"}})
    await program.call("signOut", client="later")
    assert await program.call("session", client="later") is None
    assert await sessions_of(server, session["token"]) == 1


async def test_a_token_that_could_not_be_used_for_want_of_a_network_is_kept(
    program: Program, server: Server, proxy: UnreliableProxy
) -> None:
    await program.do("client", name="first", url=server.url)
    await program.call("signIn", "android_games_service", {"player_id": "p-1"}, client="first")
    session = await program.call("session", client="first")
    ended = {"session": {**session, "token": "st_ended"}}
    await program.do("client", name="user", url=proxy.url, options=ended, stored=True)
    proxy.down = True
    proxy.cut()
    with pytest.raises(ClientError) as lost:
        await program.call("refreshSession")
    assert lost.value.error["name"] == "ConnectionLost"
    proxy.down = False
    assert (await program.call("user"))["uid"] == session["uid"]


async def test_clients_with_one_store_use_the_session_that_one_of_them_has_renewed(
    program: Program, server: Server
) -> None:
    await program.do("client", name="first", url=server.url)
    await program.call("signIn", "android_games_service", {"player_id": "p-1"}, client="first")
    session = await program.call("session", client="first")
    ended = {"session": {**session, "token": "st_ended"}}
    for client in ("one", "other"):
        await program.do("client", name=client, url=server.url, options=ended, stored=True)
    for client in ("one", "other"):
        assert (await program.call("user", client=client))["uid"] == session["uid"]
    assert await program.call("session", client="one") == await program.call("session", client="other")


async def log_out(server: Server, token: str) -> None:
    async with server.http.post(
        f"{server.url}/bp/user/logout", headers={"X-Service-Session-Token": token}
    ) as ended:
        assert ended.status == 200


async def sessions_of(server: Server, token: str) -> int:
    url, headers = f"{server.url}/bp/user/me/sessions", {"X-Service-Session-Token": token}
    async with server.http.get(url, headers=headers) as response:
        return len((await response.json())["sessions"])
