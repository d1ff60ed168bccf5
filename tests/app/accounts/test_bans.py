"""Operators ban users: their sessions end, and nobody logs in as them until the ban ends."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from app.work.retention import remove_expired
from storage.jobs.jobs import RemoveExpired
from streams.wire.codec import rfc3339
from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    PASSWORD,
    Mailbox,
    new_address,
    new_owner,
    open_not_me,
    session_of,
)
from tests.app.accounts.people import ask, bind, enter, login, me, new_user, player, token
from tests.app.operator_calls import call
from tests.app.row_locks import one_after_the_other

USERS = "/admin/api/users/default"
HOUR_S = 3600
BANNED = (400, "operation_not_allowed: the user is banned")


async def ban(box: Mailbox, uid: str, *, for_s: float | None = HOUR_S, reason: str = "spam") -> dict[str, Any]:
    body = {"reason": reason}
    if for_s is not None:
        body["until"] = rfc3339(box.server.services.clock.now("default") + timedelta(seconds=for_s))
    status, answer = await call(box.server, "POST", f"{USERS}/{uid}/ban", body)
    assert status == 200, answer
    return answer


async def unban(box: Mailbox, uid: str) -> dict[str, Any]:
    status, answer = await call(box.server, "POST", f"{USERS}/{uid}/unban", {"reason": "appeal"})
    assert status == 200, answer
    return answer


async def next_mail(box: Mailbox, address: str) -> int:
    """Return the number of the next email to an address, after notices that are still being sent."""
    await box.all_sent()
    return len(await box.mails(address)) + 1


def refusal(result: tuple[int, Any]) -> tuple[int, str]:
    status, reply = result
    return status, reply["error"]["message"] if reply and "error" in reply else str(reply)


async def test_every_way_to_log_in_is_refused_until_the_ban_ends(box: Mailbox):
    address, session = await new_owner(box)
    uid, google = (await me(box.server, session))["uid"], player()
    assert (await bind(box.server, session, google))[0] == 200
    _, stranger = await new_user(box.server)
    nth = await next_mail(box, address)
    code, reset = await box.code(address, nth=nth), await box.reset_code(address, nth=nth + 1)
    banned = await ban(box, uid)
    assert (banned["status"], banned["ended_sessions"], banned["ban"]["reason"]) == ("active", 1, "spam")
    assert (await box.me(session))[1]["error"]["error_type"] == "account.invalid_session"
    assert refusal(await box.code_login(address, code))[1].startswith("account.code_"), "codes are revoked"
    assert refusal(await box.post("email/reset_password", {"random_code": reset, "password": NEW_PASSWORD}))[
        1
    ].startswith("account.code_"), "resets are revoked"

    code, reset = await box.code(address, nth=nth + 2), await box.reset_code(address, nth=nth + 3)
    taken = (await bind(box.server, stranger, google))[1]
    refused = [
        await box.login(address, PASSWORD),
        await box.code_login(address, code),
        await box.post("email/reset_password", {"random_code": reset, "password": NEW_PASSWORD}),
        await login(box.server, google),
        await login(box.server, {"bp_auth_token": taken["bp_auth"]["bp_auth_token"]}),
        await ask(box.server, "POST", "/bp/server/user/login", json=google, headers=token()),
    ]
    assert [refusal(one) for one in refused] == [BANNED] * len(refused)
    now = box.server.services.clock.now("default").timestamp() * 1000
    for _, reply in refused:
        assert now < reply["error"]["extra"]["until_ms"] <= now + HOUR_S * 1000
    assert refusal(await box.login(address, "wrong " + PASSWORD))[1].startswith("account.auth_failed"), "as before"

    await box.later(HOUR_S - 60)
    assert refusal(await login(box.server, google)) == BANNED
    await box.later(61)
    assert (await login(box.server, google))[0] == 200
    assert (await box.login(address, PASSWORD))[0] == 200, "the refused reset has changed nothing"


async def test_a_login_that_waits_for_a_ban_begins_no_session(box: Mailbox):
    device = {"device": {"id": uuid4().hex}}
    entered, _ = await enter(box.server, device)
    uid = entered["user"]["uid"]
    banning = call(box.server, "POST", f"{USERS}/{uid}/ban", {"reason": "spam"})
    (status, _), refused = await one_after_the_other(box.server, uid, banning, login(box.server, device))
    assert (status, refusal(refused)) == (200, BANNED)
    assert (await call(box.server, "GET", f"{USERS}/{uid}"))[1]["sessions"] == 0


async def test_a_ban_without_an_end_lasts_until_an_operator_lifts_it(box: Mailbox):
    device = {"device": {"id": uuid4().hex}}
    entered, _ = await enter(box.server, device)
    uid = entered["user"]["uid"]
    await ban(box, uid, for_s=None)
    await box.later(20 * 365 * 86_400)
    status, reply = await login(box.server, device)
    assert (status, reply["error"]["error_type"]) == (400, "operation_not_allowed")
    assert "extra" not in reply["error"]
    assert await unban(box, uid) == {"status": "active", "ended_sessions": 0}
    assert (await enter(box.server, device))[0]["user"]["uid"] == uid


async def test_an_apps_server_still_acts_for_a_banned_user(box: Mailbox):
    uid, _ = await new_user(box.server)
    await ban(box, uid)
    for path in ("", "/asset"):
        assert (await ask(box.server, "GET", f"/bp/server/user/{uid}{path}", headers=token()))[0] == 200
    assert (await ask(box.server, "POST", f"/bp/server/user/{uid}/deactivate", headers=token()))[0] == 200
    assert (await call(box.server, "GET", f"{USERS}/{uid}"))[1]["status"] == "frozen"


async def test_an_unproven_address_that_was_frozen_stays_banned(box: Mailbox):
    address = new_address()
    result = await box.sign_up(address)
    assert (await box.post("me/deactivate", None, **session_of(result)))[0] == 200
    uid = result[1]["user"]["uid"]
    await ban(box, uid)
    code = await box.code(address, nth=await next_mail(box, address))
    assert refusal(await box.code_login(address, code)) == BANNED
    assert (await call(box.server, "GET", f"{USERS}/{uid}"))[1]["status"] == "frozen"


async def test_nobody_escapes_a_ban_by_deleting_the_account(box: Mailbox):
    address, session = await new_owner(box)
    uid, google = (await me(box.server, session))["uid"], player()
    assert (await bind(box.server, session, google))[0] == 200
    await ban(box, uid)
    for step in ("deactivate", "deactivate/confirm"):
        assert (await ask(box.server, "POST", f"/bp/server/user/{uid}/{step}", headers=token()))[0] == 200
    found = (await call(box.server, "GET", f"{USERS}/{uid}"))[1]
    assert (found["status"], found["ban"]["reason"]) == ("deactivated", ""), "the reason is erased"
    receipt = (await call(box.server, "GET", f"{USERS}/{uid}/erasure_receipt"))[1]["receipt"]
    assert "banned_identities" in str(receipt["kept"])

    _, stranger = await new_user(box.server)
    code = await box.code(address, nth=await next_mail(box, address))
    for refused in (
        await login(box.server, google),
        await box.code_login(address, code),
        await box.sign_up(address),
        await bind(box.server, stranger, google),
        await box.post("me/email", {"email": address, "platform": "ios", "verify_code": code}, **stranger),
    ):
        assert refusal(refused) == BANNED
        assert refused[1]["error"]["extra"]["until_ms"]
    assert await digests_left(box, uid) == 2
    await unban(box, uid)
    assert (await login(box.server, google))[1]["user"]["is_new_user"]


async def test_the_identities_of_a_deleted_user_are_free_when_the_ban_ends(box: Mailbox):
    google = player()
    entered, _ = await enter(box.server, google)
    uid = entered["user"]["uid"]
    await ban(box, uid)
    assert (await call(box.server, "POST", f"{USERS}/{uid}/erase", reason="letter"))[0] == 200
    assert refusal(await login(box.server, google)) == BANNED
    assert await digests_left(box, uid) == 1
    await box.later(HOUR_S + 1)
    assert (await login(box.server, google))[1]["user"]["is_new_user"]
    assert await digests_left(box, uid) == 0


async def digests_left(box: Mailbox, uid: str) -> int:
    """Delete expired rows, and count the digests of a user's identities."""
    await remove_expired(box.server.services, RemoveExpired())
    async with box.server.services.database.connection() as conn:
        count: int = await conn.fetchval("select count(*) from banned_identities where uid = $1", uid)
    return count


async def test_the_owner_of_an_address_gets_it_back_from_a_banned_user_who_never_proved_it(box: Mailbox):
    address = new_address()
    result = await box.sign_up(address)
    await ban(box, result[1]["user"]["uid"], for_s=None)
    assert refusal(await box.login(address)) == BANNED
    await open_not_me(box, await box.mail(address))
    assert (await box.sign_up(address, NEW_PASSWORD))[0] == 200
