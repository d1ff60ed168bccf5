"""Strangers who use up the emails of an address prevent neither its sign-up nor its bind (§4.3, §4.7)."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.app.accounts.email.mailbox import Mailbox, link_in, new_address, path_of, refusal, session_of
from tests.app.accounts.people import me, new_user

DAY = {"count": 10, "per_s": 86_400}
RESEND = {"platform": "ios"}


@pytest.fixture
async def address(box: Mailbox) -> AsyncIterator[str]:
    """An address to which ten strangers have let emails be sent."""
    await box.configure(activation=True)
    await box.configure("limits", email_day=DAY)
    address = new_address()
    sessions = [(await new_user(box.server))[1] for _ in range(11)]
    body = {"email": address, "platform": "ios"}
    replies = await asyncio.gather(*(box.post("me/email", body, **session) for session in sessions))
    assert [status for status, _ in replies] == [200] * 11
    assert sorted(0 if reply is None else reply["next_mail_s"] for _, reply in replies) == [0] * 10 + [8640]
    yield address
    await box.configure("limits")


async def test_an_owner_signs_up_after_ten_binds_of_strangers_and_asks_for_the_mail_later(
    box: Mailbox, address: str
):
    status, reply = await box.sign_up(address)
    assert status == 200
    assert 8630 <= reply["next_mail_s"] <= 8640
    session = session_of((status, reply))
    assert (await me(box.server, session))["email"] == {"email_address": address, "verified": False}
    assert refusal(await box.post("me/email/send_verify_code", RESEND, **session)) == (429, "api_rate_limit")
    await box.all_sent()
    assert len(await box.mails(address)) == 10
    await box.configure("limits", email_day={"count": 11, "per_s": 86_400})
    assert await box.post("me/email/send_verify_code", RESEND, **session) == (200, None)
    assert await box.get(path_of(link_in(await box.mail(address, nth=11)))) == (200, {})
    assert (await me(box.server, session))["email"]["verified"]


async def test_a_bind_and_a_change_stay_pending_without_a_mail(box: Mailbox, address: str):
    _, session = await new_user(box.server)
    _, other = await new_user(box.server)
    own = new_address()
    assert await box.post("me/email", {"email": own, **RESEND}, **other) == (200, None)
    for method, caller in (("POST", session), ("PUT", other)):
        status, reply = await box.post("me/email", {"email": address, **RESEND}, method, **caller)
        assert (status, list(reply)) == (200, ["next_mail_s"])
        assert 8630 <= reply["next_mail_s"] <= 8640
        assert (await me(box.server, caller))["email"] == {"email_address": address, "verified": False}
    await box.all_sent()
    assert len(await box.mails(address)) == 10


async def test_a_caller_that_asks_for_too_many_mails_is_still_refused(box: Mailbox, address: str):
    await box.configure("limits", email_day=DAY, email_address={"count": 1, "per_s": 3600})
    _, session = await new_user(box.server)
    assert await box.post("me/email", {"email": new_address(), **RESEND}, **session) == (200, None)
    assert refusal(await box.sign_up(address)) == (429, "api_rate_limit")
    assert refusal(await box.post("me/email", {"email": address, **RESEND}, **session)) == (429, "api_rate_limit")
