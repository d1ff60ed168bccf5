"""Changes of accounts are reported to sinks, in the transaction of the change."""

import asyncio
from typing import Any
from uuid import uuid4

from app.accounts.leaving.deactivation import end_freeze
from storage.userdata.freezes import EndFreeze
from tests.app.accounts.people import SOCIAL, ask, player
from tests.app.events.sinks import Sinks, changes

SESSION = "X-Service-Session-Token"


async def login(sinks: Sinks, body: dict[str, Any]) -> tuple[str, dict[str, str]]:
    status, answer = await ask(sinks.server, "POST", "/bp/user/login", json=body)
    assert status == 200, answer
    return answer["user"]["uid"], {SESSION: answer["user"]["session"]["session_token"]}


async def act(sinks: Sinks, path: str, session: dict[str, str]) -> tuple[int, Any]:
    return await ask(sinks.server, "POST", f"/bp/user/me/{path}", headers=session)


async def told(sinks: Sinks, uid: str) -> list[tuple[str, str | None]]:
    """What is stored of the account events of a user, in their order."""
    rows = await sinks.rows(
        "data ->> 'change', data ->> 'platform', data ->> 'user_id', uid", where="event = 'account'"
    )
    assert all(user_id == of for _, _, user_id, of in rows)
    return [(change, platform) for change, platform, _, of in rows if of == uid]


async def test_every_kind_of_sign_up_is_reported_once_and_a_login_is_not(sinks: Sinks) -> None:
    await sinks.add()
    device, name = {"device": {"id": uuid4().hex}}, f"ada-{uuid4().hex[:8]}"
    proof, password = player(), {"name_password": {"name": name, "password": "correct horse battery"}}
    for _ in range(2):
        await login(sinks, device)
        await login(sinks, proof)
    assert (await ask(sinks.server, "POST", "/bp/user/signup", json=password))[0] == 200
    await login(sinks, password)
    assert (await ask(sinks.server, "POST", "/bp/user/signup", json=password))[0] == 400
    rows = await sinks.rows("data ->> 'change', data ->> 'platform'")
    assert rows == [("sign_up", "device"), ("sign_up", "android_games_service"), ("sign_up", "name_password")]


async def test_concurrent_first_logins_are_one_sign_up(sinks: Sinks) -> None:
    await sinks.add()
    proof = player()
    entered = await asyncio.gather(*(login(sinks, proof) for _ in range(5)))
    assert len({uid for uid, _ in entered}) == 1
    assert len(await sinks.rows()) == 1


async def test_without_a_sink_a_sign_up_stores_no_event(sinks: Sinks) -> None:
    uid, _ = await login(sinks, player())
    await sinks.add("assets", events=["asset", "purchase"])
    await login(sinks, player())
    assert await sinks.rows() == []
    assert await told(sinks, uid) == []


async def test_a_failed_sign_up_is_not_reported(sinks: Sinks) -> None:
    """Its transaction is rolled back after the event was stored."""
    await sinks.add()
    await sinks.execute("create function refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$")
    await sinks.execute("create trigger refuse before insert on passwords for each row execute function refuse()")
    try:
        password = {"name_password": {"name": f"ada-{uuid4().hex[:8]}", "password": "correct horse battery"}}
        status, _ = await ask(sinks.server, "POST", "/bp/user/signup", json=password)
        assert status >= 500
    finally:
        await sinks.execute("drop function refuse cascade")
    assert await sinks.rows() == []


async def test_a_sign_up_fails_if_its_event_cannot_be_stored(sinks: Sinks) -> None:
    await sinks.add()
    body = {"device": {"id": uuid4().hex}}
    await sinks.execute("alter table reported_events rename to away")
    try:
        status, _ = await ask(sinks.server, "POST", "/bp/user/login", json=body)
        assert status >= 500
    finally:
        await sinks.execute("alter table away rename to reported_events")
    status, answer = await ask(sinks.server, "POST", "/bp/user/login", json=body)
    assert (status, answer["user"]["is_new_user"]) == (200, True)
    assert await told(sinks, answer["user"]["uid"]) == [("sign_up", "device")]


async def test_links_of_identities_are_reported(sinks: Sinks) -> None:
    await sinks.add()
    name = {"name_password": {"name": f"ada-{uuid4().hex[:8]}", "password": "correct horse battery"}}
    _, answer = await ask(sinks.server, "POST", "/bp/user/signup", json=name)
    uid, session = answer["user"]["uid"], {SESSION: answer["user"]["session"]["session_token"]}
    proof = player()
    assert (await ask(sinks.server, "POST", SOCIAL, json=proof, headers=session))[0] == 200
    assert (await ask(sinks.server, "POST", SOCIAL, json=proof, headers=session))[0] == 400
    player_id = proof["android_games_service"]["player_id"]
    path = f"{SOCIAL}/android_games_service/{player_id}"
    assert (await ask(sinks.server, "DELETE", path, headers=session))[0] == 200
    assert await told(sinks, uid) == [
        ("sign_up", "name_password"), ("linked", "android_games_service"), ("unlinked", "android_games_service"),
    ]  # fmt: skip


async def test_the_last_identity_that_cannot_be_unlinked_is_not_reported(sinks: Sinks) -> None:
    await sinks.add()
    proof = player()
    uid, session = await login(sinks, proof)
    path = f"{SOCIAL}/android_games_service/{proof['android_games_service']['player_id']}"
    assert (await ask(sinks.server, "DELETE", path, headers=session))[0] == 400
    assert await told(sinks, uid) == [("sign_up", "android_games_service")]


async def test_freezes_recoveries_and_deactivations_are_reported(sinks: Sinks) -> None:
    await sinks.add()
    uid, session = await login(sinks, player())
    for path in ("deactivate", "deactivate", "deactivate/recover", "deactivate", "deactivate/confirm"):
        status, answer = await act(sinks, path, session)
        assert status == 200, (path, answer)
    assert [change for change, _ in await told(sinks, uid)] == [
        "sign_up", "frozen", "recovered", "frozen", "deactivated"
    ]  # fmt: skip


async def test_a_freeze_that_ends_is_reported_once(sinks: Sinks) -> None:
    await sinks.add()
    uid, session = await login(sinks, player())
    assert (await act(sinks, "deactivate", session))[0] == 200
    await sinks.execute("update users set close_time = now() - interval '1 hour' where status = 'frozen'")
    for _ in range(2):
        await end_freeze(sinks.server.services, EndFreeze(app_id="default", uid=uid))
    assert [change for change, _ in await told(sinks, uid)] == ["sign_up", "frozen", "deactivated"]


async def test_a_sink_gets_the_account_events_that_are_stored(sinks: Sinks) -> None:
    await sinks.add()
    _, session = await login(sinks, player())
    assert (await act(sinks, "deactivate", session))[0] == 200
    async with sinks.delivering():
        bodies = await sinks.got(2)
    assert changes(bodies) == [("sign_up", "android_games_service"), ("frozen", None)]
