"""What clients put into emails about accounts: checked when it is asked for, and never a link for strangers."""

from typing import Any
from uuid import uuid4

import pytest

from storage.accounts.password_resets import SendReset
from storage.mail.mail import SendMail
from tests.app.accounts.email.mailbox import PASSWORD, Mailbox, new_address, refusal, session_of
from tests.app.mail.written_urls import FOREIGN, HOST, PLAIN

SUBJECT = "Hi {{.CustomVariables.name}} {{.Code}}"
TEMPLATE = {
    "subject": "News",
    "text": "{{.CustomVariables.name}} {{.Code}} {{.Link}}",
    "html": "<p>{{.CustomVariables.name}}</p> {{.Code}} {{.Link}}",
}
CODE, RESET = "send_email_verify_code", "email/forgot_password"
REFUSED = (400, "invalid_parameter")


async def use(box: Mailbox, template: dict[str, Any] = TEMPLATE, **more: Any) -> None:
    await box.configure(code_login=True, templates={"login_email": template, "reset": template}, **more)
    await box.configure("limits")


async def ask_for(box: Mailbox, path: str, email: str, name: Any) -> tuple[int, Any]:
    more = {"type": "login_email"} if path == CODE else {}
    return await box.post(path, {"email": email, "platform": "ios", "custom_variables": {"name": name}, **more})


@pytest.mark.parametrize("path", [CODE, RESET])
async def test_no_written_form_leads_strangers_to_a_foreign_host(box: Mailbox, path: str):
    await use(box, url_hosts=[HOST])
    address = new_address()
    answers = [(await ask_for(box, path, address, row.value), row.value) for row in FOREIGN]
    assert [value for answer, value in answers if answer == (200, None)] == []
    assert {refusal(answer) for answer, _ in answers} == {REFUSED}
    assert await unsent(box, address) == 0
    for index in range(0, len(PLAIN), 20):
        nested = {str(at): row.value for at, row in enumerate(PLAIN[index : index + 20])}
        assert await ask_for(box, path, new_address(), nested) == (200, None)


async def unsent(box: Mailbox, address: str) -> int:
    return sum(address in job.text for job in await box.jobs() if job.task in {SendMail.task, SendReset.task})


async def test_variables_lead_to_the_pages_of_the_app_only(box: Mailbox):
    pages = {"verify_redirect_url": "https://app.example/verified", "reset_url": "https://app.example:8443/reset"}
    await use(box, url_hosts=["shop.example"], **pages)
    for name in ("https://app.example/x", "https://app.example:8443/y", "see shop.example/z"):
        address = new_address()
        assert await ask_for(box, CODE, address, name) == (200, None)
        assert name in (await box.mail(address))["text"]
    assert refusal(await ask_for(box, CODE, new_address(), box.server.url)) == REFUSED
    await use(box)
    refused = await ask_for(box, CODE, new_address(), "https://app.example/x")
    assert refusal(refused) == REFUSED
    assert "custom_variables.name may only lead to hosts" in refused[1]["error"]["message"]


async def test_a_new_password_is_refused_at_once_and_alike_for_every_address(box: Mailbox):
    await use(box, {**TEMPLATE, "subject": SUBJECT, "html": "{{.CustomVariables.name}}" * 1000})
    known, unknown = new_address(), new_address()
    await box.sign_up(known)
    answers = []
    for address in (known, unknown):
        for name in (
            "a\r\nBcc: eve@example.org",
            "x" * 900,
            "<" * 2000,
            "https://evil.example",
            "www.evil.example",
        ):
            answers.append((await ask_for(box, RESET, address, name), address))
            assert refusal(answers[-1][0]) == REFUSED, name
        assert await ask_for(box, RESET, address, "Ada") == (200, None)
    messages = [
        [reply["error"]["message"] for (_, reply), to in answers if to == address] for address in (known, unknown)
    ]
    assert messages[0] == messages[1]
    mail = await box.mail(known)
    assert mail["subject"].startswith("Hi Ada ")
    await box.all_sent()
    assert await box.mails(unknown) == []


@pytest.mark.parametrize("path", [CODE, RESET])
async def test_names_arrive_with_their_joiners_and_blanks(box: Mailbox, path: str):
    await use(box, {**TEMPLATE, "subject": SUBJECT})
    name, address = "A\u200dB\u200cC a\u00a0b \u5c71\u7530\u3000\u592a\u90ce", new_address()
    await box.sign_up(address)
    assert await ask_for(box, path, address, name) == (200, None)
    mail = await box.mail(address)
    assert mail["subject"].startswith(f"Hi {name} ")
    assert name in mail["text"]
    assert name in mail["html"]


async def test_variables_that_no_email_shows_are_ignored(box: Mailbox):
    await box.configure(code_login=True)
    address = new_address()
    assert await ask_for(box, CODE, address, "https://evil.example\r\n") == (200, None)
    assert "evil" not in str(await box.mail(address))


async def test_an_address_is_no_link_in_an_email_to_its_owner(box: Mailbox):
    await box.configure(activation=True)
    local, domain = f"ada{uuid4().hex[:8]}+www.evil.example/win", "example.com"
    assert (await box.sign_up(f"{local}@{domain}"))[0] == 200
    text = (await box.mail(f"{local}@{domain}"))["text"]
    assert "www.evil" not in text
    assert "+www evil example win@example.com" in text


@pytest.mark.parametrize("name", ["www.evil.example", "evil.example", "a.b-evil.com"])
async def test_the_name_of_a_user_is_no_link_in_an_email_to_a_stranger(box: Mailbox, name: str):
    name = f"{uuid4().hex[:8]}.{name}"
    session = session_of(await box.post("signup", {"name_password": {"name": name, "password": PASSWORD}}))
    stranger = new_address()
    body = {"email": stranger, "platform": "ios"}
    await box.configure(activation=True)
    assert await box.post("me/email", body, **session) == (200, None)
    text = (await box.mail(stranger))["text"]
    assert name not in text
    assert name.replace(".", " ") in text
