"""Reading users and recording their activity (§4.5, §4.8), and the S2S forms of login and logout."""

from uuid import uuid4

import pytest

from tests.app.accounts.people import ask, error_type, me, new_user, token
from tests.running.servers import Server


@pytest.fixture
def server(guest: Server) -> Server:
    return guest


async def test_activity_is_recorded_for_a_user(server):
    uid, _ = await new_user(server)
    async with server.services.database.connection() as conn:
        await conn.execute("update users set last_login = last_login - interval '1 day' where uid = $1", uid)
    path = f"/bp/server/user/{uid}/account/record_activity"
    async with server.http.post(server.url + path, headers=token()) as response:
        assert (response.status, await response.read()) == (200, b"{}")
    async with server.services.database.connection() as conn:
        age = await conn.fetchval("select now() - last_login from users where uid = $1", uid)
    assert age.total_seconds() < 60


async def test_activity_of_an_unknown_user_is_refused(server):
    path = f"/bp/server/user/{uuid4().hex}/account/record_activity"
    status, reply = await ask(server, "POST", path, headers=token())
    assert (status, error_type(reply)) == (404, "item_not_found")


async def test_an_apps_server_reads_a_user(server):
    uid, session = await new_user(server)
    status, reply = await ask(server, "GET", f"/bp/server/user/{uid}", headers=token())
    assert status == 200
    assert reply["user"] == await me(server, session)
    status, reply = await ask(server, "GET", f"/bp/server/user/{uuid4().hex}", headers=token())
    assert (status, error_type(reply)) == (404, "not_found")


async def test_an_apps_server_logs_a_user_in_and_out(server):
    body = {"device": {"id": "of an app's server"}}
    status, reply = await ask(server, "POST", "/bp/server/user/login", json=body, headers=token())
    assert status == 200
    session = {"X-Service-Session-Token": reply["user"]["session"]["session_token"]}
    await me(server, session)
    status, reply = await ask(server, "POST", "/bp/server/user/logout", headers={**token(), **session})
    assert (status, reply) == (200, None)
    status, reply = await ask(server, "GET", "/bp/user/me", headers=session)
    assert error_type(reply) == "account.invalid_session"


async def test_a_login_path_of_servers_is_no_user(server):
    for word in ("login", "logout"):
        async with server.http.get(f"{server.url}/bp/server/user/{word}", headers=token()) as response:
            assert (response.status, response.headers["Allow"]) == (405, "POST")
