"""Sign-up and login with a name and a password, and the change of a password (§4.1, §4.3, §4.7)."""

import asyncio

import pytest

from app.http.callers.tokens import make_server_token
from app.password_hashing import open_password_hashes
from storage.operators.audit import COMMAND
from tests.app.row_locks import until_waiting
from tests.password_hashes import usual_hashes
from tests.running.servers import SERVER_KEY, Server, new_server

PASSWORD, NEW_PASSWORD = "correct horse battery", "staple gun at dawn"
REFUSED = (400, "account.auth_failed: user does not exist or the password is wrong")


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def post(server, path, body, **headers) -> tuple[int, dict]:
    async with server.http.post(f"{server.url}/bp/user/{path}", json=body, headers=headers) as response:
        return response.status, await response.json()


async def sign_up(server, name="ada", password=PASSWORD, **block) -> tuple[int, dict]:
    return await post(server, "signup", {"name_password": {"name": name, "password": password}, **block})


async def login(server, name="ada", password=PASSWORD) -> tuple[int, dict]:
    return await post(server, "login", {"name_password": {"name": name, "password": password}})


def refusal(result: tuple[int, dict]) -> tuple[int, str]:
    status, reply = result
    return status, reply["error"]["message"]


def token_of(result: tuple[int, dict]) -> str:
    status, reply = result
    assert status == 200, reply
    return reply["user"]["session"]["session_token"]


async def session_lives(server, token: str) -> bool:
    async with server.http.get(f"{server.url}/bp/user/me", headers={"X-Service-Session-Token": token}) as response:
        assert response.status in {200, 400}
        return response.status == 200


async def change(server, token, origin=PASSWORD, password=NEW_PASSWORD) -> tuple[int, str]:
    async with server.http.put(
        f"{server.url}/bp/user/me/password",
        json={"origin_password": origin, "password": password},
        headers={"X-Service-Session-Token": token},
    ) as response:
        raw = await response.read()
        return response.status, (await response.json())["error"]["message"] if raw else ""


async def configure(server, kind: str, **value):
    if kind == "auth":
        value = {"require_sign": False, **value}
    await server.services.configs.put("default", kind, "default", value, author="tests", origin=COMMAND)


async def raise_limits(server, **rates):
    wide = {name: {"count": 1_000, "per_s": 3600} for name in ("signup", "login_network", "login_address")}
    await configure(server, "limits", rates=wide | rates)


async def test_a_sign_up_creates_a_user_who_can_log_in(server):
    status, reply = await sign_up(server, "Ada.Lovelace", platform="ios", cuid="c-1")
    assert status == 200
    user = reply["user"]
    assert user["session"]["session_token"].startswith("st_")
    assert (user["name"], user["is_new_user"], user["cuid"]) == ("Ada.Lovelace", True, "c-1")
    assert user["social_accounts"] == []
    status, again = await login(server, "ada.lovelace")
    assert status == 200
    assert (again["user"]["uid"], again["user"]["is_new_user"]) == (user["uid"], False)
    assert again["user"]["session"] != user["session"]


async def test_a_server_signs_up_users_for_its_app(server):
    token = make_server_token(kid="development", alg="HS256", key=SERVER_KEY, app_id="default")
    headers = {"X-Service-Auth-Token": token}
    body = {"name_password": {"name": "ada", "password": PASSWORD}}
    for path, is_new in (("signup", True), ("login", False)):
        url = f"{server.url}/bp/server/user/{path}"
        async with server.http.post(url, json=body, headers=headers) as response:
            assert response.status == 200
            assert (await response.json())["user"]["is_new_user"] is is_new
        async with server.http.post(url, json=body) as response:
            assert response.status == 401


async def test_names_are_unique_without_case_and_compatibility_forms(server):
    assert (await sign_up(server, "Straße_\uff11"))[0] == 200
    for same in ("straße_1", "STRASSE_1", "\u017ftrasse_\uff11"):
        assert refusal(await sign_up(server, same)) == (400, "invalid_parameter: name_password.name is taken")
        assert (await login(server, same))[0] == 200


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ab", "name_password.name must be 3 to 64 characters"),
        ("a" * 65, "name_password.name must be 3 to 64 characters"),
        ("a" * 257, "name_password.name must be at most 256 characters"),
        ("a b c", "name_password.name must contain only letters, digits, '.', '_' and '-'"),
        ("ada@example", "name_password.name must contain only letters, digits, '.', '_' and '-'"),
        ("ada\u202eeva", "name_password.name must contain only letters, digits, '.', '_' and '-'"),
        (7, "name_password.name must be a string"),
        (None, "name_password.name must be a string"),
    ],
)
async def test_a_name_has_few_kinds_of_characters(server, name, message):
    assert refusal(await sign_up(server, name)) == (400, f"invalid_parameter: {message}")
    assert (await login(server, name))[0] == 400


@pytest.mark.parametrize(
    ("password", "message"),
    [
        ("", "must be at least 8 characters"),
        ("1234567", "must be at least 8 characters"),
        ("a" * 257, "must be at most 256 characters"),
        ("PassWord1", "is a common password: choose one that is harder to guess"),
        (
            "\uff34\uff41\uff4c\uff4b\uff54\uff41\uff4c\uff4b",
            "is a common password: choose one that is harder to guess",
        ),
        (12345678, "must be a string"),
    ],
)
async def test_a_new_password_is_long_and_not_common(server, password, message):
    await configure(server, "auth", common_passwords=["TalkTalk"])
    assert refusal(await sign_up(server, password=password)) == (
        400,
        f"invalid_parameter: name_password.password {message}",
    )


async def test_an_app_may_allow_common_passwords_and_require_longer_ones(server):
    await configure(server, "auth", password={"refuse_common": False, "min_characters": 9})
    assert refusal(await sign_up(server, password="password"))[0] == 400
    assert (await sign_up(server, password="password1"))[0] == 200
    assert (await login(server, password="password1"))[0] == 200


async def test_a_sign_up_names_one_identity(server):
    message = "invalid_parameter: one of name_password, email_password is required"
    assert refusal(await post(server, "signup", {"platform": "ios"})) == (400, message)
    status, reply = await post(server, "signup", {"name_password": {"name": "ada"}})
    assert refusal((status, reply)) == (400, "invalid_parameter: name_password.password is required")


async def test_a_missing_config_at_sign_up_is_a_fault_of_the_server(server):
    await server.services.configs.put(
        "default", "auth", "default", {"require_sign": True}, author="tests", origin=COMMAND
    )
    status, reply = await sign_up(server)
    assert (status, reply["error"]["error_type"]) == (500, "config_invalid")


async def test_sign_ups_are_limited_per_address(server):
    await configure(server, "limits", rates={"signup": {"count": 2, "per_s": 3600}})
    assert [(await sign_up(server, name))[0] for name in ("ada", "ada", "eve")] == [200, 400, 429]


async def test_200_concurrent_sign_ups_with_a_name_create_one_user(server):
    await raise_limits(server)
    results = await asyncio.gather(*(sign_up(server) for _ in range(200)))
    assert sorted(status for status, _ in results) == [200] + [400] * 199
    async with server.services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from users") == 1
        assert await conn.fetchval("select count(*) from passwords") == 1


@pytest.mark.parametrize(
    "body",
    [
        {"name": "ada", "password": "correct horse batterY"},
        {"name": "ada", "password": ""},
        {"name": "eve", "password": PASSWORD},
        {"name": "a b", "password": PASSWORD},
        {"name": "", "password": PASSWORD},
    ],
)
async def test_a_wrong_password_and_an_unknown_name_look_the_same(server, body):
    await sign_up(server)
    assert refusal(await post(server, "login", {"name_password": body})) == REFUSED


async def test_a_deactivated_user_looks_unknown_and_a_frozen_one_is_told_so_after_the_right_password(server):
    await sign_up(server)
    async with server.services.database.connection() as conn:
        await conn.execute(
            "update users set status = 'frozen', freeze_time = '2026-01-01', close_time = '2096-01-01'"
        )
    status, reply = await login(server)
    assert (status, reply["error"]["error_type"]) == (400, "account.deactivate_pending_user")
    assert refusal(await login(server, password="another password")) == REFUSED
    async with server.services.database.connection() as conn:
        await conn.execute("update users set status = 'deactivated'")
    assert refusal(await login(server)) == REFUSED


async def test_a_compressed_body_is_refused(server):
    headers = {"Content-Encoding": "gzip"}
    body = {"name_password": {"name": "ada", "password": PASSWORD}}
    for path in ("login", "signup"):
        message = "invalid_parameter: Content-Encoding is not supported in requests"
        assert refusal(await post(server, path, body, **headers)) == (400, message)


async def test_an_outdated_hash_is_replaced_at_the_next_login(databases, tmp_path):
    with usual_hashes():
        async with new_server(databases, tmp_path) as server:
            await check_that_an_outdated_hash_is_replaced(server)


async def check_that_an_outdated_hash_is_replaced(server):
    uid = (await sign_up(server))[1]["user"]["uid"]
    outdated = "$argon2id$v=19$m=64,t=1,p=1$"
    async with open_password_hashes(memory_kib=64, iterations=1) as weak:
        weak_hash = await weak.hash(PASSWORD)
    assert weak_hash.startswith(outdated)
    async with server.services.database.connection() as conn:
        await conn.execute("update passwords set hash = $1 where uid = $2", weak_hash, uid)
        assert (await login(server))[0] == 200
        stored = await conn.fetchval("select hash from passwords where uid = $1", uid)
    assert stored.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert (await login(server))[0] == 200


async def test_a_changed_password_ends_the_other_sessions(server):
    this, other = token_of(await sign_up(server)), token_of(await login(server))
    assert await change(server, this) == (200, "")
    assert await session_lives(server, this)
    assert not await session_lives(server, other)
    assert refusal(await login(server)) == REFUSED
    assert (await login(server, password=NEW_PASSWORD))[0] == 200


async def test_a_password_is_changed_only_by_whoever_knows_it(server):
    token = token_of(await sign_up(server))
    wrong = (400, "account.auth_failed: origin_password is wrong")
    assert await change(server, token, origin="another password") == wrong
    assert (await change(server, token, password="password"))[0] == 400
    _, guest = await post(server, "login", {"device": {"id": "phone-1"}})
    assert await change(server, guest["user"]["session"]["session_token"]) == wrong
    assert (await change(server, "st_unknown"))[1].startswith("account.invalid_session")
    assert (await login(server))[0] == 200


async def test_of_concurrent_changes_one_wins(server):
    await raise_limits(server)
    token = token_of(await sign_up(server))
    new = [f"staple gun at dawn {number}" for number in range(8)]
    results = await asyncio.gather(*(change(server, token, password=password) for password in new))
    assert sorted(status for status, _ in results) == [200] + [400] * 7
    [winner] = [password for password, (status, _) in zip(new, results, strict=True) if status == 200]
    assert (await login(server, password=winner))[0] == 200


async def test_no_session_begins_with_a_password_that_is_changed_meanwhile(server):
    token = token_of(await sign_up(server))
    database = server.services.database
    async with database.transaction() as conn:
        await conn.fetch("select from users for update")
        running = [asyncio.ensure_future(change(server, token))]  # noqa: TID251 - awaited below
        await until_waiting(database, conn)
        running.append(asyncio.ensure_future(login(server)))  # noqa: TID251 - awaited below
        await until_waiting(database, conn, 2)  # The login has proven the old password.
    changed, entered = await asyncio.gather(*running)
    assert changed == (200, "")
    assert refusal(entered) == REFUSED
