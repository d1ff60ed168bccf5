"""Sign-in, sessions and their renewal, and errors."""

from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from parley_client import ConnectionLost, FileStore, NotUnderstood, ParleyClient, ParleyError, Session
from tests.clients.cases import SIGN_KEY
from tests.clients.conftest import AUTH, configure
from tests.clients.python.conftest import PROMPT
from tests.running.ports import free_ports
from tests.running.servers import Server


async def test_a_user_signs_up_and_in_and_out(server: Server, tmp_path: Path) -> None:
    store = FileStore(tmp_path / "session.json")
    proof = {"name": "ada", "password": "correct horse battery"}
    async with ParleyClient(server.url, sign_key=SIGN_KEY, store=store) as client:
        user = await client.sign_up("name_password", proof, platform="ios")
        assert (tmp_path / "session.json").stat().st_mode & 0o777 == 0o600
        async with ParleyClient(server.url, sign_key=SIGN_KEY, store=store) as later:
            assert (await later.user())["uid"] == user["uid"]
        again = await client.sign_in("name_password", proof)
        assert (again["uid"], again["is_new_user"]) == (user["uid"], False)
        await client.sign_out()
        assert (client.session, store.load()) == (None, None)
        with pytest.raises(ParleyError) as refused:
            await client.user()
    assert (refused.value.error_type, refused.value.status) == ("account.invalid_session", 400)


async def test_clients_with_one_store_use_the_session_that_one_of_them_has_renewed(
    server: Server, tmp_path: Path
) -> None:
    store = FileStore(tmp_path / "session.json")
    async with ParleyClient(server.url, sign_key=SIGN_KEY) as first:
        user = await first.sign_in("android_games_service", {"player_id": "p-1"})
        assert first.session is not None
        ended = replace(first.session, token="st_ended")
    async with (
        ParleyClient(server.url, sign_key=SIGN_KEY, session=ended, store=store) as one,
        ParleyClient(server.url, sign_key=SIGN_KEY, session=ended, store=store) as other,
    ):
        for client in (one, other):
            assert (await client.user())["uid"] == user["uid"]
        assert one.session == other.session


def test_a_session_that_is_logged_shows_no_secret() -> None:
    session = Session("st_secret", "0190a", "bp_secret", 1)
    assert repr(session) == "Session(uid='0190a', bp_auth_expires_ms=1)"


async def test_an_error_says_what_is_wrong_and_which_request_it_was(server: Server) -> None:
    async with ParleyClient(server.url, sign_key=SIGN_KEY) as client:
        with pytest.raises(ParleyError) as refused:
            await client.sign_in("name_password", {"name": "ada", "password": "wrong horse battery"})
    error = refused.value
    assert (error.error_type, error.status, error.retryable) == ("account.auth_failed", 400, False)
    assert str(error) == error.message == "account.auth_failed: user does not exist or the password is wrong"
    assert error.request_id


async def test_an_app_that_requires_signatures_refuses_a_client_with_another_key(server: Server) -> None:
    async with ParleyClient(server.url, sign_key="another key") as client:
        with pytest.raises(ParleyError) as refused:
            await client.sign_in("device", {"id": "a"})
    assert (refused.value.error_type, refused.value.status) == ("auth_failed", 401)


async def test_a_session_that_has_ended_is_renewed_by_the_app(server: Server) -> None:
    async def sign_in(expired: ParleyClient) -> None:
        await expired.sign_in("device", {"id": "b"})

    async with ParleyClient(server.url, sign_key=SIGN_KEY, on_session_expired=sign_in) as client:
        user = await client.sign_in("device", {"id": "b"})
        ended = client.session
        async with ParleyClient(server.url, sign_key=SIGN_KEY, session=ended) as other:
            await other.sign_out()
        assert (await client.user())["uid"] == user["uid"]
        assert client.session != ended


async def test_a_session_that_has_ended_is_renewed_by_the_token_of_a_third_party_sign_in(server: Server) -> None:
    await configure(server, "auth", AUTH | {"sessions_per_user": 1})
    player = {"player_id": "g0123"}
    async with (
        ParleyClient(server.url, sign_key=SIGN_KEY) as client,
        ParleyClient(server.url, sign_key=SIGN_KEY) as newer,
    ):
        user = await client.sign_in("android_games_service", player)
        ended = client.session
        await newer.sign_in("android_games_service", player)
        assert (await client.user())["uid"] == user["uid"]
        assert client.session != ended


async def test_what_is_not_a_parley_server_is_not_understood() -> None:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="<h1>It works!</h1>", status=200 if request.path == "/bp/user/me" else 502)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with ParleyClient(f"http://127.0.0.1:{runner.addresses[0][1]}", backoff=PROMPT) as client:
        with pytest.raises(NotUnderstood, match='status 502 with a body that is not an error of Parley: "<h1>'):
            await client.sign_in("device", {"id": "a"})
        with pytest.raises(NotUnderstood, match="not a JSON object"):
            await client.user()
        with pytest.raises(NotUnderstood):
            await client.converse(strategies=["one"], text="Hello", language_code="en-US").finish()
    await runner.cleanup()


async def test_a_server_that_cannot_be_reached_is_a_lost_connection() -> None:
    async with ParleyClient(f"http://127.0.0.1:{free_ports(1)[0]}", backoff=PROMPT) as client:
        with pytest.raises(ConnectionLost) as lost:
            await client.sign_in("device", {"id": "a"})
    assert lost.value.retryable
