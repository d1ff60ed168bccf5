"""Login over real HTTP (§4.1)."""

import asyncio
from io import BytesIO

import pytest

from app.accounts.sign_in.platforms import PLATFORMS
from storage.operators.audit import COMMAND
from streams.wire.ids import is_id
from tests.calendar.clock import epoch_s
from tests.running.servers import Server


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def login(server, body, *, path="/bp/user/login", **headers) -> tuple[int, dict]:
    async with server.http.post(server.url + path, json=body, headers=headers) as response:
        return response.status, await response.json()


async def refusal(server, body) -> tuple[int, str]:
    status, reply = await login(server, body)
    return status, reply["error"]["message"]


async def configure(server, kind: str, **value):
    if kind == "auth":
        value = {"require_sign": False, **value}
    await server.services.configs.put("default", kind, "default", value, author="tests", origin=COMMAND)


async def test_a_device_login_creates_a_user_with_a_session(server):
    before = int(epoch_s())
    status, reply = await login(server, {"device": {"id": "phone-1"}, "cuid": "c-1"})
    assert status == 200
    user = reply["user"]
    token = user["session"].pop("session_token")
    assert token.startswith("st_")
    assert is_id(user.pop("uid"))
    assert before <= user.pop("create_time") <= epoch_s()
    assert user == {"name": "", "is_new_user": True, "cuid": "c-1", "social_accounts": [], "session": {}}
    assert list(reply) == ["user"]


async def test_the_same_device_is_the_same_user_in_a_new_session(server):
    _, first = await login(server, {"device": {"id": "phone-1"}, "cuid": "c-1"})
    _, second = await login(server, {"device": {"id": "phone-1"}, "login_device_id": "phone-1"})
    assert second["user"]["uid"] == first["user"]["uid"]
    assert second["user"]["create_time"] == first["user"]["create_time"]
    assert second["user"]["is_new_user"] is False
    assert second["user"]["cuid"] == "c-1"
    assert second["user"]["session"] != first["user"]["session"]


async def test_devices_and_anonymous_ids_are_different_users(server):
    bodies = [
        {"device": {"id": "a"}},
        {"device": {"id": "b"}},
        {"device": {"id": "A"}},
        {"anonymity": {"local_uid": "a"}},
        {"anonymity": {"local_uid": "\U0001f600 é"}},
    ]
    uids = {(await login(server, body))[1]["user"]["uid"] for body in bodies}
    assert len(uids) == len(bodies)


async def test_concurrent_first_logins_of_a_device_create_one_user_and_count_as_one_sign_up(server):
    await configure(server, "limits", rates={"signup": {"count": 1, "per_s": 3600}})
    replies = await asyncio.gather(*(login(server, {"device": {"id": "phone-1"}}) for _ in range(200)))
    assert {status for status, _ in replies} == {200}
    users = [reply["user"] for _, reply in replies]
    assert len({user["uid"] for user in users}) == 1
    assert len({user["session"]["session_token"] for user in users}) == 200
    assert [user["is_new_user"] for user in users].count(True) == 1
    async with server.services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from users") == 1
        assert await conn.fetchval("select count(*) from sessions where revoke_time is null") == 10


async def test_apps_do_not_share_users(server):
    await server.services.configs.put("second", "apps", "default", {}, author="tests", origin=COMMAND)
    await server.services.configs.put(
        "second", "auth", "default", {"require_sign": False}, author="tests", origin=COMMAND
    )
    _, first = await login(server, {"device": {"id": "a"}})
    _, second = await login(server, {"device": {"id": "a"}}, **{"X-Service-App-Id": "second"})
    assert second["user"]["is_new_user"] is True
    assert second["user"]["uid"] != first["user"]["uid"]
    status, reply = await login(server, {"device": {"id": "a"}}, **{"X-Service-App-Id": "third"})
    assert (status, reply["error"]["error_type"]) == (400, "app_not_found")


NO_PLATFORM = f"a platform is required: one of {', '.join(PLATFORMS)}"
WRONG_BODIES = [
    ({}, NO_PLATFORM),
    ({"fax": {"number": "1"}, "platform": "ios"}, NO_PLATFORM),
    ({"device": None}, NO_PLATFORM),
    (
        {"device": {"id": "a"}, "anonymity": {"local_uid": "a"}},
        "exactly one platform must be given, not anonymity and device",
    ),
    (
        {"device": {"id": "a"}, "name_password": {"name": "ann", "password": "x"}},
        "exactly one platform must be given, not device and name_password",
    ),
    ({"device": {}}, "device.id is required"),
    ({"device": "a"}, "device must be an object"),
    ({"device": {"id": 5}}, "device.id must be a string"),
    ({"device": {"id": ""}}, "device.id must not be empty"),
    ({"device": {"id": "a" * 257}}, "device.id must be at most 256 characters"),
    ({"device": {"id": " \t "}}, "device.id must not be blank"),
    ({"anonymity": {"local_uid": "  "}}, "anonymity.local_uid must not be blank"),
    ({"anonymity": {}}, "anonymity.local_uid is required"),
    ({"device": {"id": "a"}, "cuid": 5}, "cuid must be a string"),
    ({"device": {"id": "a"}, "idfa": "a" * 257}, "idfa must be at most 256 characters"),
    ({"device": {"id": "a"}, "login_device_id": "b"}, "login_device_id must equal device.id"),
    ({"bp_auth_token": {"token": "ba_1"}}, "bp_auth_token must be a string"),
    ({"bp_auth_token": 5}, "bp_auth_token must be a string"),
    ({"search_vendor_id": "token"}, "search_vendor_id must be an object"),
    ({"search_vendor_id": {"id_token": ""}}, "search_vendor_id.id_token must not be empty"),
    ({"ios_vendor_id": {"id": "a"}}, "ios_vendor_id.identity_token is required"),
    (
        {"social_network_a": {"access_token": "a", "expiration_date": "1"}},
        "social_network_a.expiration_date must be an integer",
    ),
    ({"android_games_service": {"player_id": " "}}, "android_games_service.player_id must not be empty"),
    ([], "body must be an object"),
]


async def test_the_error_of_an_invalid_body_names_the_field(server):
    for body, message in WRONG_BODIES:
        assert await refusal(server, body) == (400, f"invalid_parameter: {message}"), body


async def test_an_empty_body_names_no_platform(server):
    async with server.http.post(server.url + "/bp/user/login") as response:
        assert response.status == 400
        assert (await response.json())["error"]["error_type"] == "invalid_parameter"


HOSTILE_BODIES = [
    (b"{%s}" % b",".join(b'"key-%d":1' % number for number in range(100_000)), 413, "body exceeds"),
    (b'{"device":%s%s}' % (b"[" * 2_000, b"]" * 2_000), 400, "body is nested deeper than 32 levels"),
    (b'{"device":%s1%s}' % (b'{"id":' * 2_000, b"}" * 2_000), 400, "body is nested deeper than 32 levels"),
    (b'{"device":' + b"[" * 2_000, 400, "body is nested deeper than 32 levels"),
]


@pytest.mark.parametrize("request_line", ["POST /bp/user/login", "POST /bp/user/signup", "POST /bp/user/detect"])
async def test_a_body_with_many_keys_or_great_depth_is_refused(server, request_line):
    method, path = request_line.split(" ")
    for body, status, message in HOSTILE_BODIES:
        async with server.http.request(method, server.url + path, data=BytesIO(body)) as response:
            assert response.status == status
            assert (await response.json())["error"]["message"].startswith(f"invalid_parameter: {message}")


async def test_a_chunked_body_that_arrives_at_once_is_limited_too(server):
    await configure(server, "limits", body_bytes=1024)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.services.settings.port)
    body = b'{"device":{"id":"%s"}}' % (b"x" * 1024)
    head = b"POST /bp/user/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    assert (await reader.readline()).startswith(b"HTTP/1.1 413 ")
    writer.close()
    await writer.wait_closed()


async def test_an_app_may_disable_anonymous_logins(server):
    await configure(server, "auth", anonymous_login=False)
    for body in ({"device": {"id": "a"}}, {"anonymity": {"local_uid": "a"}}):
        status, reply = await login(server, body)
        assert (status, reply["error"]["error_type"]) == (400, "anonymous_login_not_allowed")


async def test_a_frozen_user_cannot_log_in_and_gets_the_remaining_time(server):
    uid, _ = await server.login("phone-1")
    await freeze(server, uid)
    status, reply = await login(server, {"device": {"id": "phone-1"}})
    error = reply["error"]
    assert (status, error["error_type"]) == (400, "account.deactivate_pending_user")
    left_s = error["extra"].pop("deactivate_left_sec")
    close_ms = error["extra"].pop("deactivate_time_ms")
    assert 10 * 86_400 - 60 < left_s <= 10 * 86_400
    assert abs(close_ms / 1000 - epoch_s() - left_s) < 2
    assert error["extra"] == {"pending_dur_sec": 15 * 86_400}


async def freeze(server, uid: str):
    """Freeze a user who asked for it five days ago and is deactivated in ten days."""
    async with server.services.database.connection() as conn:
        await conn.execute(
            "update users set status = 'frozen', freeze_time = now() - interval '5 days',"
            " close_time = now() + interval '10 days' where uid = $1",
            uid,
        )


async def test_new_users_per_address_are_limited_and_known_users_are_not(server):
    await configure(server, "limits", rates={"signup": {"count": 2, "per_s": 3600}})
    await server.login("a")
    await server.login("b")
    async with server.http.post(server.url + "/bp/user/login", json={"device": {"id": "c"}}) as response:
        assert response.status == 429
        assert (await response.json())["error"]["error_type"] == "api_rate_limit"
        assert 1700 < int(response.headers["Retry-After"]) <= 1800
    await server.login("a")
