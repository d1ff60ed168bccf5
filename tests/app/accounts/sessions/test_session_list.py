"""The list of a user's sessions, and the end of single ones."""

import pytest

from tests.app.accounts.people import ask, enter, error_type, me, new_user, token
from tests.running.servers import Server

PATH = "/bp/user/me/sessions"


@pytest.fixture
def server(guest: Server) -> Server:
    return guest


async def test_sessions_are_listed_with_where_they_were_made(server):
    body = {"device": {"id": "listed"}}
    _, first = await enter(server, body)
    async with server.http.post(
        f"{server.url}/bp/user/login", json={**body, "platform": "ios"}, headers={"User-Agent": "App/1.0"}
    ) as response:
        reply = await response.json()
    uid, session_token = reply["user"]["uid"], reply["user"]["session"]["session_token"]
    status, reply = await ask(server, "GET", PATH, headers=first)
    assert status == 200
    newer, older = reply["sessions"]
    assert (newer["os"], newer["user_agent"], newer["current"]) == ("ios", "App/1.0", False)
    assert newer["login_platform"] == "device"
    assert newer["address"].startswith("127.")
    assert older["current"] is True
    assert session_token not in str(reply)

    status, of_server = await ask(server, "GET", f"/bp/server/user/{uid}/sessions", headers=token())
    assert [listed["session_id"] for listed in of_server["sessions"]] == [newer["session_id"], older["session_id"]]
    assert not any(listed["current"] for listed in of_server["sessions"])


async def test_a_session_that_an_apps_server_made_names_no_device(server):
    status, reply = await ask(
        server, "POST", "/bp/server/user/login", json={"device": {"id": "by server"}}, headers=token()
    )
    assert status == 200
    session = {"X-Service-Session-Token": reply["user"]["session"]["session_token"]}
    [listed] = (await ask(server, "GET", PATH, headers=session))[1]["sessions"]
    assert (listed["user_agent"], listed["address"]) == ("", "")


async def test_a_session_of_the_list_can_be_ended(server):
    body = {"device": {"id": "ended"}}
    _, first = await enter(server, body)
    _, second = await enter(server, body)
    sessions = (await ask(server, "GET", PATH, headers=first))[1]["sessions"]
    [other] = [listed["session_id"] for listed in sessions if not listed["current"]]
    async with server.http.delete(f"{server.url}{PATH}/{other}", headers=first) as response:
        assert (response.status, await response.read()) == (200, b"")
    assert error_type((await ask(server, "GET", "/bp/user/me", headers=second))[1]) == "account.invalid_session"
    await me(server, first)
    assert error_type((await ask(server, "DELETE", f"{PATH}/{other}", headers=first))[1]) == "item_not_found"


async def test_a_session_of_another_user_cannot_be_ended(server):
    _, mine = await new_user(server)
    _, theirs = await new_user(server)
    [other] = (await ask(server, "GET", PATH, headers=theirs))[1]["sessions"]
    for session_id in (other["session_id"], "0" * 32, "x"):
        status, reply = await ask(server, "DELETE", f"{PATH}/{session_id}", headers=mine)
        assert (status, error_type(reply)) == (404, "item_not_found")
    await me(server, theirs)
