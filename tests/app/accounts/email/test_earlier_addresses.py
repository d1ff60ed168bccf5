"""Which addresses "this was not me" restores: those that the user had for a week, or has signed up with."""

import pytest

from tests.app.accounts.email.mailbox import (
    Mailbox,
    change_address,
    new_address,
    new_owner,
    open_not_me,
    session_of,
)
from tests.app.accounts.people import ask, bind, me, new_user, player, token

DAY_S = 86_400
Session = dict[str, str]


async def address_of(box: Mailbox, session: Session) -> str | None:
    found = (await me(box.server, session)).get("email")
    return None if found is None else found["email_address"]


async def request_reset(box: Mailbox, address: str, *, nth: int) -> None:
    """Let the owner of an address get a link "this was not me" that is valid for a week."""
    assert await box.reset_code(address, nth=nth)


async def check_not_restored(box: Mailbox, session: Session, address: str, *, notice: int) -> None:
    """Check that a notice does not offer to undo the change, and that the links of its address log out once."""
    text = (await box.mail(address, nth=notice))["text"]
    assert "undo" not in text
    user = await me(box.server, session)
    _, after = await open_not_me(box, await box.mail(address, nth=2))
    assert "The account was logged out on all devices." in after
    _, after = await open_not_me(box, await box.mail(address, nth=notice))
    assert "There is nothing to do" in after
    status, reply = await ask(box.server, "GET", f"/bp/server/user/{user['uid']}", headers=token())
    assert (status, reply["user"].get("email")) == (200, user.get("email"))


@pytest.mark.parametrize("corrects", [True, False])
async def test_an_address_that_its_user_has_corrected_is_not_restored(box: Mailbox, *, corrects: bool):
    owners, session = await new_owner(box)
    wrong, right = new_address(), owners if corrects else new_address()
    await change_address(box, session, wrong)
    await request_reset(box, wrong, nth=2)
    await box.later(DAY_S)
    await change_address(box, session, right, nth=4 if corrects else 1)
    assert "/account/not-me" in (await box.mail(wrong, nth=3))["text"], "it was the current address then"
    assert await address_of(box, session) == right
    await check_not_restored(box, session, wrong, notice=4)


async def test_an_address_that_was_bound_lately_is_not_restored_after_its_removal(box: Mailbox):
    _, session = await new_user(box.server)
    assert (await bind(box.server, session, player()))[0] == 200
    address = new_address()
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address)}
    assert await box.post("me/email", body, **session) == (200, None)
    await request_reset(box, address, nth=2)
    assert await box.post("me/email", None, "DELETE", **session) == (200, None)
    assert await address_of(box, session) is None
    await check_not_restored(box, session, address, notice=3)


@pytest.mark.parametrize("signs_up", [True, False])
async def test_an_address_is_restored_again_and_again(box: Mailbox, *, signs_up: bool):
    """A restored address counts as if it had not been replaced, whether the user has signed up with it or not."""
    address = new_address()
    if signs_up:
        session = session_of(await box.code_login(address, await box.code(address)))
    else:
        _, session = await new_user(box.server)
        body = {"email": address, "platform": "ios", "verify_code": await box.code(address)}
        assert await box.post("me/email", body, **session) == (200, None)
        await box.later(8 * DAY_S)
    nth = 1
    for _ in range(2):
        await change_address(box, session, new_address())
        _, after = await open_not_me(box, await box.mail(address, nth=nth + 2))
        assert f"{address} is its address again" in after
        session = session_of(await box.code_login(address, await box.code(address, nth=nth + 3)))
        nth += 3


async def test_an_address_that_is_bound_again_counts_as_if_it_had_not_been_removed(box: Mailbox):
    address, session = await new_owner(box)
    other = player()
    assert (await bind(box.server, session, other))[0] == 200
    session = session_of(await box.post("login", other))
    assert await box.post("me/email", None, "DELETE", **session) == (200, None)
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address, nth=4)}
    assert await box.post("me/email", body, **session) == (200, None)
    await change_address(box, session, new_address())
    _, after = await open_not_me(box, await box.mail(address, nth=6))
    assert f"{address} is its address again" in after
