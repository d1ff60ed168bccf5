"""The traces of failed logins, and their deletion by age."""

import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from app.work.retention import remove_expired
from storage.accounts import emails
from storage.accounts.codes import LOGIN_EMAIL, PHONE, SIGN_UP_EMAIL, CodeKind
from storage.jobs.jobs import RemoveExpired
from storage.operators.audit import COMMAND
from storage.tokens import new_token
from tests.app.accounts.people import ask, enter, error_type, login, me, player
from tests.app.accounts.platforms import failures
from tests.calendar.clock import utc_now
from tests.running.servers import Server

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


async def bp_auth_of(server: Server) -> str:
    reply, _ = await enter(server, player())
    token: str = reply["bp_auth"]["bp_auth_token"]
    return token


async def execute(server: Server, statement: str, *values: object) -> None:
    async with server.services.database.connection() as conn:
        await conn.execute(statement, *values)


def by_password(email: str, password: str = WRONG) -> dict[str, Any]:
    return {"email_password": {"email": email, "password": password}}


def by_code(code: str | None) -> dict[str, Any]:
    return {"email_code": {"email": ADDRESS, "verify_code": code}}


def other(code: str) -> str:
    """Return a wrong code."""
    return f"{(int(code) + 1) % 10**6:06}"


async def unknown_user(_: Server) -> dict[str, Any]:
    return by_password(ADDRESS)


async def no_password(server: Server) -> dict[str, Any]:
    await enter(server, by_code(await code_of(server, LOGIN_EMAIL, ADDRESS)))
    return by_password(ADDRESS)


async def wrong_password(server: Server) -> dict[str, Any]:
    await sign_up(server, email=ADDRESS)
    return by_password(ADDRESS)


async def many_passwords(server: Server) -> dict[str, Any]:
    await sign_up(server, email=ADDRESS)
    for _ in range(6):
        await login(server, by_password(ADDRESS))
    return by_password(ADDRESS, PASSWORD)


async def malformed_bp_auth(_: Server) -> dict[str, Any]:
    return REFUSED


async def unknown_bp_auth(_: Server) -> dict[str, Any]:
    return {"bp_auth_token": new_token("ba_")}


async def used_bp_auth(server: Server) -> dict[str, Any]:
    body = {"bp_auth_token": await bp_auth_of(server)}
    await enter(server, body)
    return body


async def expired_bp_auth(server: Server) -> dict[str, Any]:
    token = await bp_auth_of(server)
    await execute(server, "update bp_auth_tokens set expires_at = expires_at - interval '601 seconds'")
    return {"bp_auth_token": token}


async def bp_auth_of_another_app(server: Server) -> dict[str, Any]:
    token = await bp_auth_of(server)
    await execute(server, "update bp_auth_tokens set app_id = 'other'")
    return {"bp_auth_token": token}


async def no_code(server: Server) -> dict[str, Any]:
    await code_of(server, LOGIN_EMAIL, ADDRESS)
    return by_code(None)


async def code_never_sent(_: Server) -> dict[str, Any]:
    return by_code("123456")


async def wrong_code(server: Server) -> dict[str, Any]:
    body = by_code(other(await code_of(server, LOGIN_EMAIL, ADDRESS)))
    await login(server, body)
    return body


async def wrong_code_after_expiry(server: Server) -> dict[str, Any]:
    return by_code(other(await code_of(server, LOGIN_EMAIL, ADDRESS, for_s=-1)))


async def used_code(server: Server) -> dict[str, Any]:
    body = by_code(await code_of(server, LOGIN_EMAIL, ADDRESS))
    await enter(server, body)
    return body


async def replaced_code(server: Server) -> dict[str, Any]:
    older = await code_of(server, LOGIN_EMAIL, ADDRESS)
    await code_of(server, LOGIN_EMAIL, ADDRESS)
    return by_code(older)


async def expired_code(server: Server) -> dict[str, Any]:
    return by_code(await code_of(server, LOGIN_EMAIL, ADDRESS, for_s=-1))


async def code_for_a_sign_up(server: Server) -> dict[str, Any]:
    return by_code(await code_of(server, SIGN_UP_EMAIL, ADDRESS))


async def all_tries(server: Server) -> dict[str, Any]:
    code = await code_of(server, LOGIN_EMAIL, ADDRESS)
    for _ in range(5):
        await login(server, by_code(other(code)))
    return by_code(code)


async def many_wrong_codes(server: Server) -> dict[str, Any]:
    await code_of(server, LOGIN_EMAIL, ADDRESS)
    await execute(server, """update codes set wrong = '{"203.0.113.0/24": 20}'""")
    return by_code(await code_of(server, LOGIN_EMAIL, ADDRESS))


async def phone_code_never_sent(_: Server) -> dict[str, Any]:
    return {"phone": {"phone_number": NUMBER, "verify_code": "123456"}}


Case = Callable[[Server], Awaitable[dict[str, Any]]]
OF_USER = "a user with a password"
OF_APP = "one of this app that is neither used nor expired"
UNKNOWN = "one that is unknown, revoked or deleted after it expired"
TRIES = "5 tries of a code, and 20 wrong codes in a day"
FAILURES: list[tuple[Case, str, dict[str, str]]] = [
    (unknown_user, "user", {"seen": "no user has this identity", "allowed": OF_USER}),
    (no_password, "user", {"seen": "a user without a password", "allowed": OF_USER}),
    (wrong_password, "password", {"seen": "another one", "allowed": "the one that was set at <time>"}),
    (many_passwords, "rate login_network", {"seen": "6 failed logins", "allowed": "6 in 3600 s"}),
    (malformed_bp_auth, "bp_auth_token", {"seen": UNKNOWN, "allowed": OF_APP}),
    (unknown_bp_auth, "bp_auth_token", {"seen": UNKNOWN, "allowed": OF_APP}),
    (used_bp_auth, "bp_auth_token", {"seen": "one that was used at <time>", "allowed": OF_APP}),
    (expired_bp_auth, "bp_auth_token", {"seen": "one that expired at <time>", "allowed": OF_APP}),
    (bp_auth_of_another_app, "bp_auth_token", {"seen": "one of another app", "allowed": OF_APP}),
    (no_code, "code", {"seen": "no code"}),
    (
        code_never_sent,
        "code",
        {"seen": "a wrong code", "allowed": "none, because no login_email code was sent in the last day"},
    ),
    (wrong_code, "code", {"seen": "a wrong code", "allowed": "the newest login_email code (try 2 of 5)"}),
    (
        wrong_code_after_expiry,
        "code",
        {"seen": "a wrong code", "allowed": "none, because the newest login_email code expired at <time>"},
    ),
    (used_code, "code", {"seen": "a code that was used or revoked at <time>"}),
    (replaced_code, "code", {"seen": "an older code", "allowed": "the newest one"}),
    (expired_code, "code", {"seen": "a code that expired at <time>"}),
    (
        code_for_a_sign_up,
        "code",
        {"seen": "a sign_up_email code", "allowed": "none, because no login_email code was sent in the last day"},
    ),
    (all_tries, "code", {"seen": "all tries of the newest login_email code", "allowed": TRIES}),
    (many_wrong_codes, "code", {"seen": "20 wrong codes in a day", "allowed": TRIES}),
    (
        phone_code_never_sent,
        "code",
        {"seen": "a wrong code", "allowed": "none, because no phone code was sent in the last day"},
    ),
]
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


@pytest.mark.parametrize(("prepare", "step", "expected"), FAILURES, ids=[case.__name__ for case, *_ in FAILURES])
async def test_a_trace_says_what_was_seen_and_allowed_and_no_secret(server, prepare, step, expected):
    await configure(server, "email", code_login=True)
    wide = {"count": 1000, "per_s": 1}
    rates = {"login_network": {"count": 6, "per_s": 3600}, "login_address": wide, "signup": wide}
    await configure(server, "limits", rates=rates)
    body, request_id = await prepare(server), uuid4().hex
    status, reply = await login(server, body, headers={"X-Request-Id": request_id})
    [failure] = await failures(server, request_id=request_id)
    *found, last = failure["steps"]
    assert [{name: _TIME.sub("<time>", text) for name, text in step.items()} for step in found] == [
        {"step": step, **expected}
    ]
    assert last == {"step": "refused", "seen": reply["error"]["message"]}
    assert (status, failure["error_type"]) == (429 if "rate" in step else 400, error_type(reply))
    assert expected["seen"] not in reply["error"]["message"]
    [proof] = body.values()
    secrets = [proof] if isinstance(proof, str) else [proof.get("password"), proof.get("verify_code")]
    assert not [secret for secret in secrets if secret and secret in str(failure)]


async def test_a_name_that_no_user_can_have_is_told_apart_in_the_trace_only(server):
    names = {"Zoë Example": "one that no user can have", "nobody-here": "no user has this identity"}
    texts = set()
    for name, seen in names.items():
        _, reply = await login(server, {"name_password": {"name": name, "password": WRONG}})
        texts.add(reply["error"]["message"])
        assert (await failures(server))[0]["steps"][0]["seen"] == seen
    assert len(texts) == 1


async def test_a_used_token_names_the_identity_that_it_was_for(server):
    body = player("g-of-ada")
    reply, _ = await enter(server, body)
    token = {"bp_auth_token": reply["bp_auth"]["bp_auth_token"]}
    await enter(server, token)
    await login(server, token)
    [failure] = await failures(server, platform="android_games_service", social_id="g-of-ada")
    assert failure["steps"][0]["step"] == "bp_auth_token"


async def test_a_failed_sign_up_is_found_by_the_address(server):
    await configure(server, "email", sign_up_verification=True)
    body = {"email_password": {"email": "Zxg@EXAMPLE.com", "password": PASSWORD, "verify_code": "123456"}}
    status, reply = await ask(server, "POST", "/bp/user/signup", json=body)
    assert (status, error_type(reply)) == (400, "account.code_invalid")
    [failure] = await failures(server, social_id=ADDRESS)
    assert failure["operation"] == "signup"
    allowed = "none, because no sign_up_email code was sent in the last day"
    assert failure["steps"][0] == {"step": "code", "seen": "a wrong code", "allowed": allowed}


async def test_a_trace_tells_which_request_failed_and_why(server):
    request_id = uuid4().hex
    await login(server, REFUSED, headers={"X-Request-Id": request_id})
    await login(server, REFUSED)
    [failure] = await failures(server, request_id=request_id)
    assert (failure["operation"], failure["error_type"]) == ("login", "account.auth_failed")
    assert (failure["platform"], failure["social_id"]) == ("bp_auth_token", "")
    assert failure["steps"] == [
        {"step": "bp_auth_token", "seen": UNKNOWN, "allowed": OF_APP},
        {"step": "refused", "seen": "account.auth_failed: bp_auth_token is unknown, used or expired"},
    ]
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
            await conn.execute("insert into earlier_emails values ('default', $1, $2, $3)", uid, address, now)
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
        {"ios_vendor_id": {"id": "z\u200bxg", "identity_token": "x.y.z"}},
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
        await conn.execute("insert into earlier_emails values ('default', $1, 'ada@example.com', $2)", uid, now)
    for days, left in ((6, 1), (8, 0)):
        at = utc_now() + timedelta(days=days)
        await ask(server, "POST", "/dev/clock", json={"app": "default", "at": at.isoformat()})
        await remove_expired(server.services, RemoveExpired())
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
