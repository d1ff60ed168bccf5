"""Sessions over real HTTP: logout and eviction on every node, also while a store is unavailable."""

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from app.http.callers.tokens import make_server_token
from app.services import open_services
from app.settings import Settings
from storage.tokens import new_token
from tests.running.servers import SERVER_KEY, Server, listening_socket, running_server


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
def settings(server: Server) -> Settings:
    return server.services.settings


def server_token() -> str:
    return make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")


async def me(server, token: str | None) -> tuple[int, dict]:
    headers = {} if token is None else {"X-Service-Session-Token": token}
    async with server.http.get(server.url + "/bp/user/me", headers=headers) as response:
        return response.status, await response.json()


async def logout(server, token: str, *, path: str = "/bp/user/logout", **headers) -> tuple[int, bytes]:
    headers = {"X-Service-Session-Token": token} | headers
    async with server.http.post(server.url + path, headers=headers) as response:
        return response.status, await response.read()


async def alive(server, token: str) -> bool:
    status, reply = await me(server, token)
    if status == 200:
        return True
    assert (status, reply["error"]["error_type"]) == (400, "account.invalid_session")
    return False


@asynccontextmanager
async def another(settings):
    """Another process of the same deployment."""
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(listening_socket())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        services = await stack.enter_async_context(open_services(replace(settings, public_url=url)))
        yield await stack.enter_async_context(running_server(services, listener))


async def test_a_session_token_identifies_its_user(server):
    uid, token = await server.login()
    status, reply = await me(server, token)
    assert status == 200
    assert reply["user"].pop("create_time") > 0
    assert reply == {"user": {"uid": uid, "name": "", "is_new_user": False, "cuid": "", "social_accounts": []}}


async def test_a_bad_session_is_refused(server):
    for token in (None, "", "st_", "garbage", "é", new_token()):
        status, reply = await me(server, token)
        assert (status, reply["error"]["error_type"]) == (400, "account.invalid_session"), token


async def test_logout_ends_only_its_session_and_has_an_empty_reply(server):
    _, one = await server.login("phone")
    _, two = await server.login("phone")
    assert await logout(server, one) == (200, b"")
    assert not await alive(server, one)
    assert await alive(server, two)
    assert (await logout(server, one))[0] == 400


async def test_logout_takes_effect_on_every_node_immediately(server, settings):
    async with another(settings) as second:
        _, token = await server.login()
        assert await alive(second, token)
        assert await alive(server, token)
        await logout(server, token)
        assert not await alive(second, token)
        assert not await alive(server, token)


async def test_the_eleventh_session_ends_the_oldest_on_every_node(server, settings):
    async with another(settings) as second:
        tokens = [(await server.login("phone"))[1] for _ in range(10)]
        assert all([await alive(second, token) for token in tokens])
        tokens.append((await server.login("phone"))[1])
        assert [await alive(second, token) for token in tokens] == [False] + [True] * 10


async def test_an_app_server_ends_the_session_that_it_names(server):
    _, token = await server.login()
    auth = {"X-Service-Auth-Token": server_token()}
    assert (await logout(server, "", path="/bp/server/user/logout", **auth))[0] == 400
    assert await logout(server, token, path="/bp/server/user/logout", **auth) == (200, b"")
    assert not await alive(server, token)


async def test_s2s_logout_accepts_c2s_headers(server):
    _, token = await server.login()
    assert await logout(server, token, path="/bp/server/user/logout") == (200, b"")
    assert not await alive(server, token)


async def test_a_frozen_user_keeps_its_session_for_itself_and_logout(server):
    uid, token = await server.login()
    async with server.services.database.connection() as conn:
        await conn.execute(
            "update users set status = 'frozen', freeze_time = now(), close_time = now() + interval '1 day'"
        )
    assert await alive(server, token)
    headers = {"X-Service-Session-Token": token}
    url = server.url + "/bp/ai/conversation/query?conversation_id=" + uid
    async with server.http.get(url, headers=headers) as response:
        assert (await response.json())["error"]["error_type"] == "account.deactivate_pending_user"
        assert response.status == 400
    assert (await logout(server, token))[0] == 200


async def test_an_app_server_can_only_read_a_frozen_user(server):
    uid, _ = await server.login()
    async with server.services.database.connection() as conn:
        await conn.execute(
            "update users set status = 'frozen', freeze_time = now(), close_time = now() + interval '1 day'"
        )
    headers = {"X-Service-Auth-Token": server_token()}
    user = f"{server.url}/bp/server/user/{uid}"
    async with server.http.get(user, headers=headers) as response:
        assert response.status == 200
    async with server.http.get(user + "/ai/conversation/query?conversation_id=c", headers=headers) as response:
        assert (await response.json())["error"]["error_type"] == "account.deactivate_pending_user"


async def test_a_deactivated_user_cannot_log_in(server):
    uid, token = await server.login()
    async with server.services.database.connection() as conn:
        await conn.execute("update users set status = 'deactivated'")
    assert not await alive(server, token)
    headers = {"X-Service-Auth-Token": server_token()}
    async with server.http.get(f"{server.url}/bp/server/user/{uid}", headers=headers) as response:
        assert response.status == 404
        assert (await response.json())["error"]["error_type"] == "not_found"
