"""Without a public URL, no mail has a link: it would lead to the address that the server listens on (§4.7)."""

from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from tests.app.accounts.email.mailbox import (
    NEW_PASSWORD,
    PASSWORD,
    Mailbox,
    link_in,
    new_address,
    open_mailbox,
    refusal,
    session_of,
)

REFUSED = (417, "config_invalid")


@pytest.fixture(scope="module")
async def testbed(databases, tmp_path_factory):
    async with open_mailbox(databases, tmp_path_factory.mktemp("data"), has_public_url=False) as box:
        yield box


@pytest.fixture
async def box(testbed: Mailbox):
    await testbed.configure(code_login=True, activation=True)
    return testbed


async def test_mails_with_links_are_refused_and_the_operator_is_told_why(box: Mailbox):
    address = new_address()
    session = session_of(await box.code_login(address, await box.code(address)))
    other = {"email": new_address(), "platform": "ios"}
    with capture_logs() as logged:
        assert refusal(await box.post("me/email", other, "PUT", **session)) == REFUSED
        assert refusal(await box.post("email/forgot_password", {**other, "email": address})) == REFUSED
        assert refusal(await box.sign_up(new_address()))[1] == "config_invalid"
    errors = [line["error"] for line in logged if line["event"] == "mail.link_refused"]
    assert errors == ["PARLEY_PUBLIC_URL is not set: set it to the URL at which users reach this server"] * 3
    assert "email" in (await box.me(session))[1]["user"]


async def test_an_app_with_a_page_of_its_own_needs_no_public_url_for_new_passwords(box: Mailbox):
    await box.configure(code_login=True, reset_url="https://app.example/reset")
    address = new_address()
    await box.code_login(address, await box.code(address))
    reset = {"email": address, "platform": "website"}
    assert await box.post("email/forgot_password", reset) == (200, None)
    mail = await box.mail(address, nth=2)
    assert link_in(mail).startswith("https://app.example/reset?random_code=")
    assert "end all its sessions" not in mail["text"]


async def test_a_change_needs_no_notice(box: Mailbox):
    named, address = {"name": f"n{uuid4().hex}", "password": PASSWORD}, new_address()
    session = session_of(await box.post("signup", {"name_password": named}))
    body = {"email": address, "platform": "ios", "verify_code": await box.code(address)}
    assert await box.post("me/email", body, **session) == (200, None)
    change = {"origin_password": PASSWORD, "password": NEW_PASSWORD}
    with capture_logs() as logged:
        assert await box.post("me/password", change, "PUT", **session) == (200, None)
    assert "mail.link_refused" in [line["event"] for line in logged]
    await box.all_sent()
    assert len(await box.mails(address)) == 1
