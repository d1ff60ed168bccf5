"""What works and what is refused while Valkey is unavailable."""

from app.http.callers.auth import REPLAYS_UNCHECKED
from app.http.callers.tokens import make_server_token, sign_header
from storage.operators.audit import COMMAND
from tests.app.valkey_proxy import settings, valkey_proxy
from tests.running.servers import SERVER_KEY

__all__ = ["settings", "valkey_proxy"]

SIGN_KEY = "k" * 32
BODY = b'{"device":{"id":"phone-1"}}'


async def status_of_me(server, token: str) -> int:
    headers = {"X-Service-Session-Token": token}
    async with server.http.get(server.url + "/bp/user/me", headers=headers) as response:
        return response.status


async def log_out(server, token: str) -> int:
    headers = {"X-Service-Session-Token": token}
    async with server.http.post(server.url + "/bp/user/logout", headers=headers) as response:
        return response.status


async def s2s_login(server, token: str) -> int:
    headers = {"X-Service-Auth-Token": token}
    url = server.url + "/bp/server/user/login"
    async with server.http.post(url, data=BODY, headers=headers) as response:
        return response.status


def unchecked(what: str) -> float:
    return REPLAYS_UNCHECKED.labels(what)._value.get()


def token(**more) -> str:
    return make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default", **more)


async def test_login_sessions_and_logout_work_without_valkey(server, valkey_proxy):
    _, before = await server.login()
    await valkey_proxy.stop()
    _, during = await server.login()
    assert await status_of_me(server, before) == 200
    assert await status_of_me(server, during) == 200
    assert await log_out(server, before) == 200
    assert await status_of_me(server, before) == 400


async def test_a_logout_without_valkey_holds_when_valkey_returns_with_an_old_copy(server, valkey_proxy):
    _, session = await server.login()
    assert await status_of_me(server, session) == 200  # Valkey then has a copy.
    await valkey_proxy.stop()
    assert await log_out(server, session) == 200
    await valkey_proxy.start()
    assert await status_of_me(server, session) == 400


async def test_a_nonce_is_not_checked_without_valkey_and_is_counted(server, valkey_proxy):
    value = {"sign_keys": [{"id": "k", "key": SIGN_KEY}]}
    await server.services.configs.put("default", "auth", "default", value, author="tests", origin=COMMAND)
    path = "/bp/user/login"
    header = sign_header(SIGN_KEY, method="POST", path_and_query=path, body=BODY, nonce="n" * 16)

    async def send() -> int:
        headers = {"X-Service-Sign": header}
        async with server.http.post(server.url + path, data=BODY, headers=headers) as response:
            return response.status

    assert [await send(), await send()] == [200, 401]
    await valkey_proxy.stop()
    before = unchecked("nonce")
    assert await send() == 200
    assert unchecked("nonce") == before + 1
    await valkey_proxy.start()
    assert await send() == 401


async def test_a_token_id_is_not_checked_if_single_use_is_not_required(server, valkey_proxy):
    once = token(jti="j-1")
    assert [await s2s_login(server, once), await s2s_login(server, once)] == [200, 401]
    await valkey_proxy.stop()
    before = unchecked("token")
    assert await s2s_login(server, once) == 200
    assert unchecked("token") == before + 1
