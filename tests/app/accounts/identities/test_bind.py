"""Binding and unbinding identities over real HTTP (§4.5)."""

import asyncio
from collections import Counter
from uuid import uuid4

import pytest

from storage.accounts import identities
from storage.accounts.identities import Identity
from storage.operators.audit import COMMAND
from tests.app.accounts.people import SOCIAL, ask, bind, enter, error_type, login, me, new_user, player, token
from tests.app.row_locks import until_waiting
from tests.running.servers import Server


@pytest.fixture
def server(guest: Server) -> Server:
    return guest


async def test_a_bound_identity_is_shown_and_logs_in(server):
    uid, session = await new_user(server)
    body = player("g-bound")
    status, reply = await bind(server, session, {**body, "platform": "android"})
    bp_auth = reply.pop("bp_auth")
    account = {"platform": "android_games_service", "id": "g-bound"}
    assert (status, reply) == (200, {"social_account": account})
    assert bp_auth["bp_auth_token"].startswith("ba_")
    assert (await me(server, session))["social_accounts"] == [account]

    reply, _ = await enter(server, body)
    assert reply["user"]["uid"] == uid
    assert reply["user"]["is_new_user"] is False
    assert reply["user"]["social_accounts"] == [account]


async def test_an_apps_server_binds_and_unbinds_for_a_user(server):
    uid, session = await new_user(server)
    body, path = player(), f"/bp/server/user/{uid}/socialaccount"
    status, _ = await ask(server, "POST", path, json=body, headers=token())
    assert status == 200
    [account] = (await me(server, session))["social_accounts"]
    await ask(server, "POST", path, json={"ios_games_service": {"player_id": "p"}}, headers=token())
    own = f"{path}/{account['platform']}/{account['id']}"
    assert error_type((await ask(server, "DELETE", own, headers=token()))[1]) == "account.sp_link_may_cause_ghost"
    assert error_type((await ask(server, "POST", f"/bp/server/user/{uuid4().hex}/socialaccount", json=body,
                                 headers=token()))[1]) == "not_found"  # fmt: skip
    assert (await bind(server, session, body))[0] == 400


async def test_a_session_is_accepted_on_the_s2s_path_of_its_own_user_only(server):
    uid, session = await new_user(server)
    other, _ = await new_user(server)
    body = player()
    assert (await ask(server, "POST", f"/bp/server/user/{other}/socialaccount", json=body, headers=session))[
        0
    ] == 403
    assert (await ask(server, "POST", f"/bp/server/user/{uid}/socialaccount", json=body, headers=session))[0] == 200


async def test_a_second_identity_of_a_platform_is_refused_with_a_bp_auth_for_it(server):
    _, session = await new_user(server)
    first, second = player(), player()
    await bind(server, session, first)
    for again in (first, second):
        status, reply = await bind(server, session, again)
        assert (status, error_type(reply)) == (400, "account.sp_linked_platform")
        assert set(reply) == {"error", "bp_auth"}
        assert set(reply["bp_auth"]) == {"bp_auth_token", "expire_at_ms"}
    # The second identity has no user, so the token makes one.
    reply, _ = await enter(server, {"bp_auth_token": reply["bp_auth"]["bp_auth_token"]})
    assert reply["user"]["is_new_user"] is True
    assert [account["id"] for account in reply["user"]["social_accounts"]] == [
        second["android_games_service"]["player_id"]
    ]


async def test_an_identity_of_another_user_is_refused_with_a_bp_auth_for_that_user(server):
    owner, owners = await new_user(server)
    _, session = await new_user(server)
    body = player()
    await bind(server, owners, body)
    status, reply = await bind(server, session, body)
    assert (status, error_type(reply)) == (400, "account.sp_linked_another")
    reply, _ = await enter(server, {"bp_auth_token": reply["bp_auth"]["bp_auth_token"]})
    assert reply["user"]["uid"] == owner


@pytest.mark.parametrize(
    "body",
    [
        {"device": {"id": "d"}},
        {"anonymity": {"local_uid": "a"}},
        {"bp_auth_token": "ba_1"},
    ],
)
async def test_what_is_no_third_party_cannot_be_bound(server, body):
    _, session = await new_user(server)
    status, reply = await bind(server, session, body)
    assert (status, error_type(reply)) == (400, "invalid_parameter")


async def test_unbinding_ends_the_sessions_of_the_identity_and_frees_it(server):
    _, session = await new_user(server)
    body = player(f"g/{uuid4().hex}")
    await bind(server, session, body)
    reply, second = await enter(server, body)
    bp_auth = reply["bp_auth"]["bp_auth_token"]
    await _give_another_login_method(server, reply["user"]["uid"])
    player_id = body["android_games_service"]["player_id"]
    path = f"{SOCIAL}/android_games_service/{player_id.replace('/', '%2F')}"
    async with server.http.delete(server.url + path, headers=session) as response:
        assert (response.status, await response.read()) == (200, b"")

    assert error_type((await ask(server, "GET", "/bp/user/me", headers=second))[1]) == "account.invalid_session"
    assert error_type((await login(server, {"bp_auth_token": bp_auth}))[1]) == "account.auth_failed"
    assert "android_games_service" not in str((await me(server, session))["social_accounts"])
    status, reply = await ask(server, "DELETE", path, headers=session)
    assert (status, error_type(reply)) == (404, "item_not_found")
    reply, _ = await enter(server, body)
    assert reply["user"]["is_new_user"] is True


async def _give_another_login_method(server: Server, uid: str) -> None:
    value = {"audiences": ["tests"]}
    await server.services.configs.put("default", "sign_in", "microblog", value, author="tests", origin=COMMAND)
    async with server.services.database.connection() as conn:
        await conn.execute(
            "insert into identities (app_id, platform, social_id, uid, create_time)"
            " values ('default', 'microblog', $1, $2, now())",
            uuid4().hex,
            uid,
        )


async def test_the_last_login_method_cannot_be_unbound_although_a_device_remains(server):
    _, session = await new_user(server)
    body = player()
    await bind(server, session, body)
    path = f"{SOCIAL}/android_games_service/{body['android_games_service']['player_id']}"
    status, reply = await ask(server, "DELETE", path, headers=session)
    assert (status, error_type(reply)) == (400, "account.sp_link_may_cause_ghost")
    assert len((await me(server, session))["social_accounts"]) == 1


async def test_concurrent_unbinds_leave_one_login_method(server):
    for _ in range(5):
        uid, session = await new_user(server)
        body = player()
        await bind(server, session, body)
        await _give_another_login_method(server, uid)
        accounts = (await me(server, session))["social_accounts"]
        paths = [f"{SOCIAL}/{account['platform']}/{account['id']}" for account in accounts]
        replies = await asyncio.gather(*(ask(server, "DELETE", path, headers=session) for path in paths))
        assert sorted(status for status, _ in replies) == [200, 400]
        assert len((await me(server, session))["social_accounts"]) == 1


async def test_a_login_that_waits_for_an_unbind_is_one_of_a_new_user(server):
    body = player()
    reply, _ = await enter(server, body)
    uid = reply["user"]["uid"]
    identity = Identity("default", "android_games_service", body["android_games_service"]["player_id"])
    await _give_another_login_method(server, uid)
    database = server.services.database
    async with database.transaction() as conn:
        assert await identities.unlink(conn, identity, uid=uid)
        waiting = asyncio.ensure_future(login(server, body))  # noqa: TID251 - awaited below
        await until_waiting(database, conn)
    status, reply = await waiting
    assert (status, reply["user"]["is_new_user"]) == (200, True)
    async with database.connection() as conn:
        assert await conn.fetchval("select count(*) from sessions where uid = $1", uid) == 1


@pytest.mark.parametrize("path", ["device/d", "android_games_service/unknown", "fax/1", "phone/+1"])
async def test_what_is_not_bound_cannot_be_unbound(server, path):
    _, session = await new_user(server)
    status, reply = await ask(server, "DELETE", f"{SOCIAL}/{path}", headers=session)
    assert (status, error_type(reply)) == (404, "item_not_found")


async def test_200_concurrent_binds_of_one_identity_link_it_once(server):
    users = [await new_user(server) for _ in range(4)]
    body = player()
    replies = await asyncio.gather(*(bind(server, users[n % 4][1], body) for n in range(200)))
    assert [status for status, _ in replies].count(200) == 1
    refused = Counter(error_type(reply) for status, reply in replies if status != 200)
    assert refused == {"account.sp_linked_platform": 49, "account.sp_linked_another": 150}
    assert all("bp_auth" in reply for _, reply in replies)


async def test_a_frozen_user_cannot_bind(server):
    uid, _ = await new_user(server)
    async with server.services.database.connection() as conn:
        await conn.execute(
            "update users set status = 'frozen', freeze_time = now(), close_time = now() where uid = $1", uid
        )
    path = f"/bp/server/user/{uid}/socialaccount"
    status, reply = await ask(server, "POST", path, json=player(), headers=token())
    assert (status, error_type(reply)) == (400, "account.deactivate_pending_user")


async def test_a_bind_without_a_platform_names_only_those_that_can_be_bound(server):
    _, session = await new_user(server)
    status, reply = await bind(server, session, {})
    message = reply["error"]["message"]
    assert (status, "ios_vendor_id" in message) == (400, True)
    assert not [name for name in ("anonymity", "device", "phone", "bp_auth_token") if name in message]
