"""Logins with a `bp_auth_token` (§2.6)."""

import asyncio
from datetime import timedelta

import pytest

from storage.operators.audit import COMMAND
from storage.tokens import encode
from tests.app.accounts.people import ask, enter, error_type, login, player
from tests.calendar.clock import epoch_s
from tests.running.servers import Server


@pytest.fixture
def server(guest: Server) -> Server:
    return guest


async def test_a_third_party_login_has_a_bp_auth_that_logs_in_once(server):
    first, _ = await enter(server, player())
    bp_auth = first["bp_auth"]
    assert abs(bp_auth["expire_at_ms"] / 1000 - epoch_s() - 600) < 10
    body = {"bp_auth_token": bp_auth["bp_auth_token"]}
    again, _ = await enter(server, body)
    assert again["user"]["uid"] == first["user"]["uid"]
    assert again["user"]["is_new_user"] is False
    assert again["user"]["social_accounts"] == first["user"]["social_accounts"]
    assert "bp_auth" not in again
    status, reply = await login(server, body)
    assert (status, error_type(reply)) == (400, "account.auth_failed")


async def test_a_device_login_has_no_bp_auth(server):
    reply, _ = await enter(server, {"device": {"id": "without bp_auth"}})
    assert list(reply) == ["user"]


async def test_of_200_concurrent_uses_one_wins(server):
    first, _ = await enter(server, player())
    body = {"bp_auth_token": first["bp_auth"]["bp_auth_token"]}
    replies = await asyncio.gather(*(login(server, body) for _ in range(200)))
    assert [status for status, _ in replies].count(200) == 1
    assert {error_type(reply) for status, reply in replies if status != 200} == {"account.auth_failed"}


@pytest.mark.parametrize("text", ["", "ba_1", "st_1", encode(bytes(32), "ba_"), encode(bytes(32))])
async def test_an_unknown_token_is_refused(server, text):
    status, reply = await login(server, {"bp_auth_token": text})
    assert (status, error_type(reply)) == (400, "account.auth_failed")


async def test_a_token_expires(server):
    first, _ = await enter(server, player())
    async with server.services.database.connection() as conn:
        await conn.execute(
            "update bp_auth_tokens set expires_at = expires_at - $1::interval", timedelta(seconds=601)
        )
    status, reply = await login(server, {"bp_auth_token": first["bp_auth"]["bp_auth_token"]})
    assert (status, error_type(reply)) == (400, "account.auth_failed")


async def test_a_token_is_that_of_its_app_and_stored_as_a_digest(server):
    first, _ = await enter(server, player())
    text = first["bp_auth"]["bp_auth_token"]
    async with server.services.database.connection() as conn:
        rows = await conn.fetch("select bp_auth_tokens::text as row from bp_auth_tokens")
        assert not [row for row in rows if text in row["row"]]
        await conn.execute("update bp_auth_tokens set app_id = 'other'")
    assert (await login(server, {"bp_auth_token": text}))[0] == 400


async def test_a_token_of_a_platform_that_was_switched_off_is_refused(server):
    first, _ = await enter(server, player())
    body = {"bp_auth_token": first["bp_auth"]["bp_auth_token"]}
    await configure(server, enabled=False)
    try:
        (status, reply), direct = await login(server, body), await login(server, player())
    finally:
        await configure(server, enabled=True)
    assert (status, error_type(reply)) == (direct[0], error_type(direct[1])) == (422, "config_invalid")
    assert (await login(server, body))[0] == 200


async def configure(server: Server, *, enabled: bool) -> None:
    await server.services.configs.put(
        "default", "sign_in", "android_games_service", {"enabled": enabled}, author="tests", origin=COMMAND
    )


async def test_logout_revokes_the_tokens_of_the_identity(server):
    body = player()
    first, session = await enter(server, body)
    second, _ = await enter(server, player())
    assert (await ask(server, "POST", "/bp/user/logout", headers=session))[0] == 200
    assert (await login(server, {"bp_auth_token": first["bp_auth"]["bp_auth_token"]}))[0] == 400
    assert (await login(server, {"bp_auth_token": second["bp_auth"]["bp_auth_token"]}))[0] == 200
