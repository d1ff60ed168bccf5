"""The traces of failed logins, and their deletion by age."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.accounts.retention import remove_expired_sign_ins
from storage import earlier_emails, emails
from storage.audit import COMMAND
from storage.codes import LOGIN_EMAIL, PHONE, CodeKind
from storage.jobs import RemoveExpiredSignIns
from tests.app.accounts.people import ask, enter, login, me, player
from tests.app.accounts.platforms import failures
from tests.servers import Server

REFUSED = {"bp_auth_token": "ba_unknown"}
PASSWORD, WRONG = "correct horse battery", "staple gun at dawn"
ADDRESS, NUMBER = "zxg@example.com", "+4915112723056"


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


async def code_of(server: Server, kind: CodeKind, target: str, *, for_s: float = 600) -> str:
    """Return a new code, as if it had been sent."""
    services, now = server.services, server.services.clock.now("default")
    async with services.database.transaction() as conn:
        return await services.codes.issue(conn, "default", kind, target, now=now, for_s=for_s)


async def configure(server: Server, kind: str, **value: Any) -> None:
    await server.services.configs.put("default", kind, "default", value, author="tests", origin=COMMAND)


async def sign_up(server: Server, **info: str) -> dict[str, str]:
    """Sign up with a password, and return the header of the session."""
    platform = "name_password" if "name" in info else "email_password"
    body = {platform: {"password": PASSWORD, **info}}
    status, reply = await ask(server, "POST", "/bp/user/signup", json=body)
    assert status == 200, reply
    return {"X-Service-Session-Token": reply["user"]["session"]["session_token"]}


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


@pytest.mark.parametrize(
    ("platform", "proof", "social_id"),
    [
        ("email_password", {"email": " Zxg@EXAMPLE.com ", "password": WRONG}, ADDRESS),
        ("email_code", {"email": "ZXG@example.com", "verify_code": "12345x"}, ADDRESS),
        ("name_password", {"name": "\N{FULLWIDTH LATIN CAPITAL LETTER N}ameKGSG", "password": WRONG}, "namekgsg"),
        ("phone", {"phone_number": "+49 151 12723056", "verify_code": "12345x"}, NUMBER),
    ],
)
async def test_a_failure_is_found_by_the_identity_and_deleted_with_its_user(server, platform, proof, social_id):
    await configure(server, "email", code_login=True)
    if platform == "name_password":
        session = await sign_up(server, name="NameKGSG")
    elif platform == "email_password":
        session = await sign_up(server, email=ADDRESS)
    else:
        kind, field = (LOGIN_EMAIL, "email") if platform == "email_code" else (PHONE, "phone_number")
        right = {field: social_id, "verify_code": await code_of(server, kind, social_id)}
        _, session = await enter(server, {platform: right})
    assert (await login(server, {platform: proof}))[0] == 400
    assert (await login(server, {platform: proof}))[0] == 400
    found = await failures(server, social_id=social_id)
    assert [failure["platform"] for failure in found] == [platform, platform]
    for step in ("", "/confirm"):
        assert (await ask(server, "POST", f"/bp/user/me/deactivate{step}", headers=session))[0] == 200
    assert await failures(server) == []


async def test_failures_with_a_pending_or_an_earlier_address_are_deleted_with_its_user(server):
    _, session = await enter(server, player())
    uid, now = (await me(server, session))["uid"], server.services.clock.now("default")
    await configure(server, "email")
    await sign_up(server, email="other@example.com")
    async with server.services.database.connection() as conn:
        await emails.set_pending(conn, "default", uid, address="pending@example.com", now=now)
        for address in ("earlier@example.com", "other@example.com"):
            await earlier_emails.keep(conn, "default", uid, address=address, now=now)
    for name in ("Pending", "Earlier", "Other"):
        body = {"email_password": {"email": f"{name}@example.com", "password": WRONG}}
        assert (await login(server, body))[0] == 400
    for step in ("", "/confirm"):
        assert (await ask(server, "POST", f"/bp/user/me/deactivate{step}", headers=session))[0] == 200
    assert [failure["social_id"] for failure in await failures(server)] == ["other@example.com"]


@pytest.mark.parametrize(
    "body",
    [
        {"email_password": {"email": "zxg at example.com", "password": WRONG}},
        {"email_code": {"email": "zxg at example.com", "verify_code": "12345x"}},
        {"name_password": {"name": "Zoë Example", "password": WRONG}},
        {"name_password": {"name": "z" * 200, "password": WRONG}},
        {"phone": {"phone_number": "0151 12723056", "verify_code": "12345x"}},
        {"ios_vendor_id": {"id": "zxg\u200b", "identity_token": "x.y.z"}},
    ],
)
async def test_what_cannot_be_an_id_of_a_user_is_not_stored(server, body):
    await configure(server, "email", code_login=True)
    assert (await login(server, body))[0] in {400, 422}
    [platform] = body
    [failure] = await failures(server, platform=platform)
    assert failure["social_id"] == ""
    assert not [text for text in body[platform].values() if text in str(failure)]


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
