"""The traces of failed logins, and their deletion by age."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from app.accounts.retention import remove_expired_sign_ins
from storage import earlier_emails
from storage.audit import COMMAND
from storage.jobs import RemoveExpiredSignIns
from tests.app.accounts.people import ask, enter, login, player
from tests.app.accounts.platforms import failures
from tests.servers import Server

REFUSED = {"bp_auth_token": "ba_unknown"}


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def test_a_trace_tells_which_request_failed_and_why(server):
    request_id = uuid4().hex
    await login(server, REFUSED, headers={"X-Request-Id": request_id})
    await login(server, REFUSED)
    [failure] = await failures(server, request_id=request_id)
    assert (failure["operation"], failure["error_type"]) == ("login", "account.auth_failed")
    assert (failure["platform"], failure["social_id"]) == ("bp_auth_token", "")
    assert len(await failures(server)) == 2
    assert await failures(server, platform="microblog") == []


async def test_a_device_of_a_failed_login_is_not_named(server):
    auth = {"require_sign": False, "anonymous_login": False}
    await server.services.configs.put("default", "auth", "default", auth, author="tests", origin=COMMAND)
    await login(server, {"device": {"id": "a secret of the device"}})
    [failure] = await failures(server, platform="device")
    assert "a secret of the device" not in str(failure)


async def test_a_login_that_succeeds_leaves_no_trace(server):
    await enter(server, player())
    assert await failures(server) == []


async def test_traces_of_one_address_are_limited(server):
    rates = {"rates": {"login_failures": {"count": 3, "per_s": 3600}}}
    await server.services.configs.put("default", "limits", "default", rates, author="tests", origin=COMMAND)
    for _ in range(5):
        assert (await login(server, REFUSED))[0] == 400
    assert len(await failures(server)) == 3


async def test_traces_expired_tokens_and_earlier_addresses_are_deleted(server):
    reply, _ = await enter(server, player())
    await login(server, REFUSED)
    async with server.services.database.connection() as conn:
        now, uid = server.services.clock.now("default"), reply["user"]["uid"]
        await earlier_emails.keep(conn, "default", uid, address="ada@example.com", now=now)
    for days, left in ((6, 1), (8, 0)):
        at = datetime.now(UTC) + timedelta(days=days)
        await ask(server, "POST", "/dev/clock", json={"app": "default", "at": at.isoformat()})
        await remove_expired_sign_ins(server.services, RemoveExpiredSignIns())
        assert len(await failures(server)) == left
        async with server.services.database.connection() as conn:
            assert await conn.fetchval("select count(*) from bp_auth_tokens") == 0
            assert await conn.fetchval("select count(*) from earlier_emails") == left
    await ask(server, "POST", "/dev/clock", json={"app": "default", "at": None})


async def test_traces_need_an_editor_and_an_app(server):
    status, _ = await ask(server, "GET", "/admin/api/login_failures")
    assert status == 401
    headers = {"Authorization": f"Bearer {server.services.settings.admin_token.get_secret_value()}"}
    status, reply = await ask(server, "GET", "/admin/api/login_failures?app=none", headers=headers)
    assert (status, reply["error"]["error_type"]) == (404, "item_not_found")
