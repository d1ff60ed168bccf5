"""Wrong codes are failed logins: they are limited wherever a code is checked, and lock nobody out (§4.1, §4.7)."""

import asyncio

import pytest

from storage.accounts import codes, identities
from storage.accounts.codes import LOGIN_EMAIL, PHONE, SIGN_UP_EMAIL
from storage.accounts.emails import identity_of
from tests.app.accounts.people import new_user, token
from tests.app.accounts.sign_in.guessing import (
    BIND,
    HOME,
    LOGIN,
    RESET,
    SIGNUP,
    Calls,
    by_code,
    by_phone,
    new_email,
    other,
)

NUMBER = "+4915112345678"


@pytest.mark.parametrize("where", ["login", "phone", "signup", "bind"])
async def test_ten_wrong_codes_refuse_the_network_and_no_other(calls: Calls, where: str):
    email, headers = new_email(), {}
    kind, target = {"phone": (PHONE, NUMBER), "signup": (SIGN_UP_EMAIL, email)}.get(where, (LOGIN_EMAIL, email))
    if where == "signup":
        await calls.configure("email", mail_accounts=["inbox"], sign_up_verification=True)
    if where == "bind":
        headers = (await new_user(calls.server))[1]
    code = await calls.code(kind, target)

    async def enter(given: str, address: str) -> int:
        path, body = {
            "login": (LOGIN, by_code(email, given)),
            "phone": (LOGIN, by_phone(NUMBER, given)),
            "signup": (
                SIGNUP,
                {"email_password": {"email": email, "password": "correct horse battery", "verify_code": given}},
            ),
            "bind": (BIND, {"email": email, "platform": "ios", "verify_code": given}),
        }[where]
        return await calls.status(path, body, address, **headers)

    assert [await enter(other(code), HOME) for _ in range(11)] == [400] * 10 + [429]
    assert await enter(code, "198.51.100.200") == 429
    assert await enter(code, "198.51.101.7") == 200


async def test_wrong_codes_of_resets_count_per_address_and_right_ones_do_not(calls: Calls):
    await calls.limit(login_address={"count": 3, "per_s": 3600})
    body = {"random_code": "wrong", "password": "correct horse battery"}
    replies = [await calls.post(RESET, body) for _ in range(4)]
    assert [status for status, _ in replies] == [400] * 3 + [429]
    assert replies[-1][1]["error"]["error_type"] == "api_rate_limit"
    assert await calls.status(LOGIN, by_code(new_email(), "123456")) == 429, "all guesses have one count"
    email = new_email()
    services, now = calls.server.services, calls.server.services.clock.now("default")
    await calls.status(SIGNUP, {"email_password": {"email": email, "password": "correct horse battery"}})
    async with services.database.transaction() as conn:
        uid = await identities.user_of(conn, identity_of("default", email))
        code = await services.codes.issue(conn, "default", codes.RESET, email, now=now, for_s=60, uid=uid)
    assert await calls.status(RESET, body | {"random_code": code}) == 200


@pytest.mark.parametrize("guesses", [60, pytest.param(500, marks=pytest.mark.soak)])
async def test_concurrent_guesses_of_a_code_get_no_more_answers_than_the_tries(calls: Calls, guesses: int):
    email = new_email()
    code = await calls.code(LOGIN_EMAIL, email)
    given = [f"{(int(code) + number) % 10**6:06}" for number in range(1, guesses)]
    replies = await asyncio.gather(*(calls.post(LOGIN, by_code(email, guess)) for guess in given))
    texts = [reply["error"]["message"] for _, reply in replies]
    assert sum(text.endswith("verify_code is wrong") for text in texts) == 5
    assert [status for status, _ in replies].count(429) == guesses - 11


async def test_a_right_code_that_is_sent_thirty_times_at_once_counts_as_no_failure(calls: Calls):
    email = new_email()
    code = await calls.code(LOGIN_EMAIL, email)
    statuses = await asyncio.gather(*(calls.status(LOGIN, by_code(email, code)) for _ in range(30)))
    assert sorted(statuses) == [200] + [400] * 29
    assert await calls.status(LOGIN, by_code(email, await calls.code(LOGIN_EMAIL, email))) == 200


async def test_codes_through_an_apps_server_have_their_own_tries(calls: Calls):
    email = await calls.new_owner()
    code = await calls.code(LOGIN_EMAIL, email)
    for number in range(4):
        await asyncio.gather(
            *(calls.status(LOGIN, by_code(email, other(code)), f"203.0.{number}.1") for _ in range(5))
        )
    path, headers = "/bp/server/user/login", token()
    assert await calls.status(path, by_code(email, other(code)), "203.0.113.1", **headers) == 400
    assert await calls.status(path, by_code(email, code), "203.0.113.1", **headers) == 200


async def test_every_login_with_a_proof_makes_its_network_known_and_the_last_fifty_are_kept(calls: Calls):
    uid, headers = await new_user(calls.server)
    networks = "select network from login_networks where uid = $1 order by last_used_at desc"

    async def known() -> list[str]:
        async with calls.server.services.database.connection() as conn:
            return [row["network"] for row in await conn.fetch(networks, uid)]

    assert await known() == [], "the id of a device is no proof"
    email = new_email()
    body = {"email": email, "platform": "ios", "verify_code": await calls.code(LOGIN_EMAIL, email)}
    assert await calls.status(BIND, body, HOME, **headers) == 200
    assert await known() == ["198.51.100.0/24"]
    later = "insert into login_networks values ('default', $1, $2, now() + make_interval(secs => $3))"
    async with calls.server.services.database.connection() as conn:
        await conn.executemany(later, [(uid, f"203.0.{number}.0/24", 60 + number) for number in range(49)])
    login = by_code(email, await calls.code(LOGIN_EMAIL, email))
    assert await calls.status(LOGIN, login, "192.0.2.1") == 200
    assert await known() == [*(f"203.0.{number}.0/24" for number in reversed(range(49))), "192.0.2.0/24"]
