"""The freeze of an account, its recovery and its end, as clients and app servers see them (§3.1, §4.6)."""

import asyncio
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pytest

from storage.tokens import digest
from storage.userdata.erasures import EraseUser, RevokeToken
from tests.app.accounts.email.mailbox import (
    PASSWORD,
    Mailbox,
    link_in,
    new_address,
    path_of,
    refusal,
    session_of,
)
from tests.app.accounts.people import ask, bind, enter, login, me, new_user, player, token
from tests.calendar.clock import epoch_s
from tests.running.another_server import another_server
from tests.waiting import until

PENDING = (400, "account.deactivate_pending_user")
NOBODY = (400, "account.auth_failed")
ENDED = (400, "account.invalid_session")
NOT_FROZEN = (400, "invalid_parameter")
ENDPOINT = "/bp/user/me/deactivate"
DAY_S = 86_400


@pytest.fixture(scope="module")
async def box(testbed: Mailbox) -> Mailbox:
    await testbed.configure(code_login=True)
    return testbed


async def call(box: Mailbox, session: dict[str, str], step: str = "") -> tuple[int, Any]:
    return await ask(box.server, "POST", ENDPOINT + step, headers=session)


async def freeze(box: Mailbox, session: dict[str, str]) -> None:
    assert await call(box, session) == (200, None)


async def close(box: Mailbox, session: dict[str, str]) -> None:
    await freeze(box, session)
    await box.all_sent()  # A notice that is not sent yet would be deleted.
    assert await call(box, session, "/confirm") == (200, None)


async def use(box: Mailbox, session: dict[str, str]) -> tuple[int, Any]:
    """Call an endpoint that frozen accounts cannot use."""
    return await ask(box.server, "GET", "/bp/user/me/sessions", headers=session)


async def new_named(box: Mailbox) -> tuple[str, dict[str, str]]:
    name = f"u{uuid4().hex[:12]}"
    return name, session_of(await box.post("signup", {"name_password": {"name": name, "password": PASSWORD}}))


async def by_name(box: Mailbox, name: str, password: str = PASSWORD) -> tuple[int, Any]:
    return await box.post("login", {"name_password": {"name": name, "password": password}})


async def set_freeze(box: Mailbox, freeze_s: int) -> None:
    path = "/admin/api/configs/default/auth/default"
    _, config = await ask(box.server, "GET", path, headers=operator(box))
    value = {**config["value"], "deactivation": {"freeze_s": freeze_s}}
    assert (await ask(box.server, "PUT", path, json={"value": value}, headers=operator(box)))[0] == 200


def operator(box: Mailbox) -> dict[str, str]:
    return {"Authorization": f"Bearer {box.server.services.settings.admin_token.get_secret_value()}"}


async def test_a_frozen_account_keeps_its_sessions_for_itself_and_can_be_recovered(box: Mailbox):
    uid, session = await new_user(box.server)
    assert (await use(box, session))[0] == 200
    await freeze(box, session)
    await freeze(box, session)

    status, reply = await use(box, session)
    assert refusal((status, reply)) == PENDING
    extra = reply["error"]["extra"]
    assert extra["pending_dur_sec"] == 15 * DAY_S
    assert 15 * DAY_S - 60 < extra["deactivate_left_sec"] <= 15 * DAY_S
    assert abs(extra["deactivate_time_ms"] / 1000 - epoch_s() - extra["deactivate_left_sec"]) < 2
    assert (await me(box.server, session))["uid"] == uid

    assert await call(box, session, "/recover") == (200, None)
    assert (await use(box, session))[0] == 200
    assert refusal(await call(box, session, "/recover")) == NOT_FROZEN
    assert refusal(await call(box, session, "/confirm")) == NOT_FROZEN


async def test_a_frozen_account_can_log_out(box: Mailbox):
    _, session = await new_user(box.server)
    await freeze(box, session)
    assert await box.post("logout", None, **session) == (200, None)
    assert refusal(await call(box, session, "/recover")) == ENDED


async def test_a_freeze_and_a_recovery_hold_on_every_process_immediately(box: Mailbox):
    _, session = await new_user(box.server)
    async with another_server(box.server.services.settings) as second:
        path = "/bp/user/me/sessions"
        assert (await ask(second, "GET", path, headers=session))[0] == 200  # It has a copy of the session.
        await freeze(box, session)
        assert refusal(await ask(second, "GET", path, headers=session)) == PENDING
        assert await call(box, session, "/recover") == (200, None)
        assert (await ask(second, "GET", path, headers=session))[0] == 200
        await close(box, session)
        assert refusal(await ask(second, "GET", path, headers=session)) == ENDED


async def test_a_confirmation_long_after_the_freeze_ends_cached_sessions(box: Mailbox):
    _, session = await new_user(box.server)
    await freeze(box, session)
    valkey = box.server.services.valkey
    key = valkey.key(f"default:{digest(session['X-Service-Session-Token'])}", "session")

    async def is_cached() -> bool:
        await valkey.client.delete(key)  # The tombstones of the freeze expire after a minute.
        assert (await box.me(session))[0] == 200
        return bool(await valkey.client.get(key))

    await until(is_cached)
    assert await call(box, session, "/confirm") == (200, None)
    assert refusal(await box.me(session)) == ENDED


async def test_nobody_can_log_in_to_a_frozen_account_and_only_a_right_proof_tells_so(box: Mailbox):
    name, session = await new_named(box)
    address, games = new_address(), player()
    assert (await bind(box.server, session, games))[0] == 200
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address)}
    assert await box.post("me/email", body, **session) == (200, None)
    reply, _ = await enter(box.server, games)
    bp_auth = reply["bp_auth"]["bp_auth_token"]
    reset = await box.reset_code(address, nth=2)
    sent = await box.code(address, nth=3)
    await freeze(box, session)
    frozen = await box.mail(address, nth=4)

    assert "frozen" in frozen["text"]
    assert refusal(await by_name(box, name, "wrong password")) == NOBODY
    assert refusal(await by_name(box, name)) == PENDING
    assert refusal(await box.login(address)) == PENDING
    assert refusal(await login(box.server, games)) == PENDING
    assert refusal(await ask(box.server, "POST", "/bp/server/user/login", json=games, headers=token())) == PENDING
    assert refusal(await login(box.server, {"bp_auth_token": bp_auth})) == NOBODY
    assert refusal(await box.code_login(address, sent)) == (400, "account.code_invalid")
    assert refusal(await box.code_login(address, await box.code(address, nth=5))) == PENDING
    answer = await box.post("email/reset_password", {"random_code": reset, "password": "staple gun at dawn"})
    assert refusal(answer) == (400, "account.code_invalid")
    taken = {"name_password": {"name": name, "password": PASSWORD}}
    assert refusal(await box.post("signup", taken)) == NOT_FROZEN
    _, other = await new_user(box.server)
    status, reply = await bind(box.server, other, games)
    assert refusal((status, reply)) == (400, "account.sp_linked_another")
    assert refusal(await login(box.server, {"bp_auth_token": reply["bp_auth"]["bp_auth_token"]})) == PENDING


async def test_a_forgotten_password_of_a_frozen_account_cannot_be_reset(box: Mailbox):
    address = new_address()
    session = session_of(await box.code_login(address, await box.code(address)))
    await freeze(box, session)
    assert await box.post("email/forgot_password", {"email": address, "platform": "ios"}) == (200, None)
    await box.all_sent()
    assert len(await box.mails(address)) == 2, "the code and the notice of the freeze"


async def test_whoever_did_not_deactivate_the_account_recovers_it_by_the_mail(box: Mailbox):
    address = new_address()
    session = session_of(await box.code_login(address, await box.code(address)))
    await freeze(box, session)
    link = path_of(link_in(await box.mail(address, nth=2)))
    form = {"token": unquote(link.partition("token=")[2])}
    async with box.server.http.post(f"{box.server.url}/account/not-me", data=form) as response:
        assert response.status == 200, await response.text()
    assert refusal(await use(box, session)) == ENDED
    assert (await box.code_login(address, await box.code(address, nth=3)))[0] == 200


async def test_an_app_server_freezes_recovers_and_deactivates_a_user(box: Mailbox):
    uid, session = await new_user(box.server)
    own = f"/bp/server/user/{uid}"

    async def of_server(step: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        return await ask(box.server, "POST", f"{own}/deactivate{step}", headers=headers or token())

    assert refusal(await of_server("/recover")) == NOT_FROZEN
    assert await of_server("") == (200, None)
    assert await of_server("") == (200, None)
    assert refusal(await ask(box.server, "GET", f"{own}/sessions", headers=token())) == PENDING
    assert (await ask(box.server, "GET", own, headers=token()))[0] == 200
    assert await of_server("/recover", session) == (200, None)
    assert await of_server("", session) == (200, None)
    assert await of_server("/confirm") == (200, None)
    assert refusal(await ask(box.server, "GET", own, headers=token())) == (404, "not_found")
    for step in ("", "/confirm", "/recover"):
        assert refusal(await of_server(step)) == (404, "item_not_found")
    _, other = await new_user(box.server)
    assert (await of_server("", other))[0] == 403


async def test_identities_of_a_deactivated_user_are_free(box: Mailbox):
    name, session = await new_named(box)
    address, games = new_address(), player()
    assert (await bind(box.server, session, games))[0] == 200
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address)}
    assert await box.post("me/email", body, **session) == (200, None)
    uid = (await me(box.server, session))["uid"]
    await close(box, session)

    assert refusal(await box.me(session)) == ENDED
    assert refusal(await by_name(box, name)) == NOBODY
    assert refusal(await box.login(address)) == NOBODY
    exists = await box.post("detect", {"email": address})
    assert exists == (200, {"email_data": {"exists": False}})
    _, other = await new_user(box.server)
    assert (await bind(box.server, other, games))[0] == 200
    assert (await box.post("signup", {"name_password": {"name": name, "password": PASSWORD}}))[0] == 200
    status, reply = await box.code_login(address, await box.code(address, nth=3))
    assert (status, reply["user"]["is_new_user"]) == (200, True)
    assert reply["user"]["uid"] != uid


async def test_only_the_id_of_a_deactivated_user_is_left(box: Mailbox):
    device = uuid4().hex
    reply, session = await enter(box.server, {"device": {"id": device}, "cuid": "c-1", "platform": "ios"})
    uid, address, waiting = reply["user"]["uid"], new_address(), new_address()
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address)}
    assert await box.post("me/email", body, **session) == (200, None)
    assert await box.post("me/email", {"email": waiting, "platform": "ios"}, "PUT", **session) == (200, None)
    await box.mail(waiting)
    assert refusal(await box.login(address, "a wrong password")) == NOBODY
    await freeze(box, session)
    await box.all_sent()  # A notice that is being sent during the deactivation is not deleted.
    assert await call(box, session, "/confirm") == (200, None)

    jobs = [job.text for job in await box.jobs() if job.task not in {EraseUser.task, RevokeToken.task}]
    assert not [text for text in jobs if any(value in text for value in (uid, address, waiting, device))]
    async with box.server.services.database.connection() as conn:
        row = await conn.fetchrow("select * from users where uid = $1", uid)
        assert (row["status"], row["name"], row["cuid"]) == ("deactivated", "", "")
        assert row["last_login"] == row["create_time"]
        tables = await conn.fetch("select tablename from pg_tables where schemaname = 'public'")
        for (table,) in tables:
            rows = await conn.fetch(f"select t::text as all from {table} t")
            texts = [row["all"] for row in rows]
            assert not [text for text in texts if any(value in text for value in (address, waiting, device))], table
            if table not in {"users", "erasures", "revocations", "procrastinate_jobs", "procrastinate_events"}:
                assert not [text for text in texts if uid in text], table


async def test_an_account_is_deactivated_when_its_freeze_has_ended(box: Mailbox):
    (_, first), (_, second), (_, third) = [await new_user(box.server) for _ in range(3)]
    await freeze(box, first)
    await freeze(box, second)
    assert await call(box, second, "/recover") == (200, None)
    await set_freeze(box, 20 * DAY_S)
    await freeze(box, second)
    await freeze(box, third)
    assert await call(box, third, "/recover") == (200, None)
    await set_freeze(box, 15 * DAY_S)
    try:
        await box.later(15 * DAY_S + 60)
        await until(lambda: is_ended(box, first))
        assert refusal(await use(box, second)) == PENDING
        assert (await use(box, third))[0] == 200
        await box.later(5 * DAY_S)
        await until(lambda: is_ended(box, second))
        assert (await use(box, third))[0] == 200
    finally:
        await ask(box.server, "POST", "/dev/clock", json={"app": "default", "at": None})


async def is_ended(box: Mailbox, session: dict[str, str]) -> bool:
    return (await box.me(session))[0] == 400


async def test_a_shorter_freeze_after_a_recovery_ends_in_time(box: Mailbox):
    uid, session = await new_user(box.server)
    await freeze(box, session)
    assert await call(box, session, "/recover") == (200, None)
    await set_freeze(box, 1)
    try:
        await freeze(box, session)
    finally:
        await set_freeze(box, 15 * DAY_S)
    await until(lambda: is_ended(box, session))
    path = f"/bp/server/user/{uid}/erasure_receipt"
    _, reply = await ask(box.server, "GET", path, headers=token())
    assert reply["receipt"]["cause"] == "freeze_end"


async def test_an_account_cannot_be_recovered_after_its_freeze_has_ended(box: Mailbox):
    uid, session = await new_user(box.server)
    await freeze(box, session)
    async with box.server.services.database.connection() as conn:  # The job that ends the freeze is late.
        await conn.execute("update users set close_time = now() where uid = $1", uid)
    assert refusal(await call(box, session, "/recover")) == NOT_FROZEN
    assert await call(box, session, "/confirm") == (200, None)


async def test_the_job_that_ends_a_freeze_does_nothing_before_that(box: Mailbox):
    uid, session = await new_user(box.server)
    await freeze(box, session)
    async with box.server.services.database.connection() as conn:
        await conn.execute(
            "update procrastinate_jobs set scheduled_at = null"
            " where task_name = 'end_freeze' and args ->> 'uid' = $1",
            uid,
        )
    await until(lambda: waits_again(box, uid))
    assert refusal(await use(box, session)) == PENDING


async def waits_again(box: Mailbox, uid: str) -> bool:
    async with box.server.services.database.connection() as conn:
        found = await conn.fetchval(
            "select count(*) from procrastinate_jobs where task_name = 'end_freeze' and args ->> 'uid' = $1"
            " and status = 'todo' and scheduled_at is not null",
            uid,
        )
    return bool(found == 1)


async def test_of_concurrent_confirmations_and_recoveries_one_wins(box: Mailbox):
    for has_identity in (True, True, False):
        uid, session = await new_user(box.server)
        if not has_identity:  # Its owner has said that the address was not his own.
            async with box.server.services.database.connection() as conn:
                await conn.execute("delete from identities where uid = $1", uid)
        await freeze(box, session)
        steps = ["/confirm", "/recover"] * 10
        answers = await asyncio.gather(*(call(box, session, step) for step in steps))
        won = [step for step, (status, _) in zip(steps, answers, strict=True) if status == 200]
        lost = {refusal(answer) for answer in answers if answer[0] != 200}
        assert len(won) == 1
        status, _ = await ask(box.server, "GET", f"/bp/server/user/{uid}", headers=token())
        if won == ["/confirm"]:
            assert (status, lost) == (404, {ENDED})
        else:
            assert (status, lost) == (200, {NOT_FROZEN})
            assert (await use(box, session))[0] == 200


async def test_a_login_beside_a_deactivation_leaves_no_usable_session(box: Mailbox):
    for _ in range(3):
        device = {"device": {"id": uuid4().hex}}
        _, session = await enter(box.server, device)
        logins = [login(box.server, device) for _ in range(8)]
        answers = await asyncio.gather(*logins[:4], call(box, session), *logins[4:])
        assert answers.pop(4) == (200, None)
        for answer in answers:
            outcome = refusal(answer if answer[0] != 200 else await use(box, session_of(answer)))
            assert outcome == PENDING
