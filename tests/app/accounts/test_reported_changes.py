"""Changes of email addresses, and what proofs of addresses undo, are reported to sinks of account events."""

from collections.abc import AsyncIterator

import pytest

from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    Mailbox,
    change_address,
    new_address,
    new_owner,
    open_not_me,
    session_of,
)
from tests.app.accounts.people import bind, me, new_user, player
from tests.app.operator_calls import call


@pytest.fixture
async def box(box: Mailbox) -> AsyncIterator[Mailbox]:
    configs, value = box.server.services.configs, {"stream": "tests", "events": ["account"]}
    await configs.put("default", "events", "tests", value, author="tests", origin=COMMAND)
    yield box
    await configs.delete(ConfigKey("default", "events", "tests"), author="tests", origin=COMMAND)


async def told(box: Mailbox, uid: str) -> list[tuple[str, str | None]]:
    statement = (
        "select data ->> 'change', data ->> 'platform' from reported_events where uid = $1 order by position"
    )
    async with box.server.services.database.connection() as conn:
        return [tuple(row) for row in await conn.fetch(statement, uid)]


async def test_a_changed_address_and_its_restoration_are_reported(box: Mailbox):
    address, session = await new_owner(box)
    uid = (await me(box.server, session))["uid"]
    signed_up = [("sign_up", "email")]
    assert await told(box, uid) == signed_up
    await change_address(box, session, new_address())
    changed = [("unlinked", "email"), ("linked", "email")]
    assert await told(box, uid) == signed_up + changed
    await open_not_me(box, await box.mail(address, nth=3))
    assert await told(box, uid) == signed_up + changed + changed


async def test_an_address_that_is_bound_by_a_code_and_unbound_is_reported(box: Mailbox):
    uid, session = await new_user(box.server)
    assert (await bind(box.server, session, player()))[0] == 200
    address = new_address()
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address)}
    assert await box.post("me/email", body, **session) == (200, None)
    assert await box.post("me/email", None, "DELETE", **session) == (200, None)
    assert await told(box, uid) == [
        ("sign_up", "device"), ("linked", "android_games_service"), ("linked", "email"), ("unlinked", "email"),
    ]  # fmt: skip


async def test_identities_that_the_owner_of_an_address_refuses_are_reported(box: Mailbox):
    address, session = await new_owner(box)
    uid = (await me(box.server, session))["uid"]
    assert (await bind(box.server, session, player()))[0] == 200
    await open_not_me(box, await box.mail(address, nth=2))
    assert (await told(box, uid))[1:] == [
        ("linked", "android_games_service"), ("unlinked", "android_games_service")
    ]  # fmt: skip


async def test_what_the_first_proof_of_an_address_undoes_is_reported(box: Mailbox):
    address = new_address()
    result = await box.sign_up(address)
    uid, session = result[1]["user"]["uid"], session_of(result)
    assert (await bind(box.server, session, player()))[0] == 200
    assert (await box.post("me/deactivate", None, **session))[0] == 200
    body = {"random_code": await box.reset_code(address, nth=2), "password": NEW_PASSWORD}
    assert await box.post("email/reset_password", body) == (200, None)
    assert (await told(box, uid))[1:] == [
        ("linked", "android_games_service"), ("frozen", None), ("unlinked", "android_games_service"),
        ("recovered", None),
    ]  # fmt: skip


async def test_bans_are_reported_with_their_ends(box: Mailbox):
    uid, _ = await new_user(box.server)
    path = f"/admin/api/users/default/{uid}"
    for action, body in (
        ("ban", {"reason": "spam", "until": "2090-01-01T00:00:00Z"}),
        ("ban", {"reason": "spam", "until": "2090-01-01T00:00:00Z"}),
        ("ban", {"reason": "spam"}),
        ("unban", {"reason": "appeal"}),
        ("unban", {"reason": "appeal"}),
    ):
        assert (await call(box.server, "POST", f"{path}/{action}", body))[0] == 200
    statement = "select data ->> 'change', data ->> 'until' from reported_events where uid = $1 order by position"
    async with box.server.services.database.connection() as conn:
        found = [tuple(row) for row in await conn.fetch(statement, uid)]
    assert found[1:] == [("banned", "2090-01-01T00:00:00Z"), ("banned", None), ("unbanned", None)]


async def test_an_account_that_loses_its_last_identity_is_frozen(box: Mailbox):
    address = new_address()
    uid = (await box.sign_up(address))[1]["user"]["uid"]
    await open_not_me(box, await box.mail(address))
    assert await told(box, uid) == [("sign_up", "email"), ("unlinked", "email"), ("frozen", None)]
