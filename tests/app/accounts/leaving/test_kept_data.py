"""What is deleted of an account by age, and with its user."""

from typing import Any

import pytest

from app.work.retention import remove_expired
from storage.jobs.jobs import RemoveExpired
from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    Mailbox,
    change_address,
    new_address,
    new_owner,
    open_not_me,
    session_of,
)
from tests.app.accounts.people import me

DAY_S = 86_400
COUNTS = """
select (select count(*) from sessions where uid = $1) as sessions,
    (select count(*) from login_networks where uid = $1) as networks,
    (select count(*) from pending_emails where uid = $1) as pending
"""


async def deactivate(box: Mailbox, session: dict[str, str]) -> None:
    for step in ("", "/confirm"):
        assert await box.post(f"me/deactivate{step}", None, **session) == (200, None)


@pytest.mark.parametrize("taken", [False, True])
async def test_codes_for_an_earlier_address_are_deleted_with_its_user(box: Mailbox, *, taken: bool):
    """But not those of another user who has the address now."""
    address, session = await new_owner(box)
    await change_address(box, session, new_address())
    code, nth = await box.code(address, nth=4), 5
    if taken:
        session_of(await box.code_login(address, code))
        code = await box.code(address, nth=nth)
    await deactivate(box, session)
    async with box.server.services.database.connection() as conn:
        left = await conn.fetchval("select count(*) from codes where target = $1 and closed_at is null", address)
    assert left == (1 if taken else 0)
    if taken:
        session_of(await box.code_login(address, code))


async def test_sessions_networks_and_pending_addresses_are_deleted_by_age(box: Mailbox):
    """Also those of a user who never logs in again."""
    address, session = await new_owner(box)
    uid = (await me(box.server, session))["uid"]
    assert await box.post("me/email", {"email": new_address(), "platform": "ios"}, "PUT", **session) == (200, None)
    assert await box.post("logout", None, **session) == (200, None)
    session_of(await box.login(address))

    async def left_after(days: float) -> dict[str, Any]:
        await box.server.services.clock.move("default", offset_s=days * DAY_S)
        await remove_expired(box.server.services, RemoveExpired())
        async with box.server.services.database.connection() as conn:
            return dict(await conn.fetchrow(COUNTS, uid))

    assert await left_after(6) == {"sessions": 2, "networks": 1, "pending": 1}
    assert await left_after(8) == {"sessions": 1, "networks": 1, "pending": 1}
    assert await left_after(38) == {"sessions": 0, "networks": 1, "pending": 1}, "after 30 days without use, and 7"
    assert await left_after(61) == {"sessions": 0, "networks": 1, "pending": 0}
    assert await left_after(181) == {"sessions": 0, "networks": 0, "pending": 0}


async def test_networks_of_logins_are_forgotten_when_somebody_else_may_have_logged_in(box: Mailbox):
    async def networks(uid: str) -> list[str]:
        async with box.server.services.database.connection() as conn:
            rows = await conn.fetch("select network from login_networks where uid = $1", uid)
        return [row["network"] for row in rows]

    async def remember(uid: str, network: str) -> None:
        async with box.server.services.database.connection() as conn:
            await conn.execute("insert into login_networks values ('default', $1, $2, now())", uid, network)

    address = new_address()
    _, reply = await box.sign_up(address)
    uid = reply["user"]["uid"]
    assert await networks(uid) == ["127.0.0.0/24"]
    await remember(uid, "198.51.100.0/24")
    session_of(await box.code_login(address, await box.code(address, nth=2)))
    assert await networks(uid) == ["127.0.0.0/24"], "that of the caller, who receives emails"
    await remember(uid, "198.51.100.0/24")
    body = {"random_code": await box.reset_code(address, nth=3), "password": NEW_PASSWORD}
    assert await box.post("email/reset_password", body) == (200, None)
    assert await networks(uid) == ["127.0.0.0/24"], "that of the caller, who receives emails"
    await open_not_me(box, await box.mail(address, nth=4))
    assert await networks(uid) == []
