"""Addresses that a mail server refuses do not delay the codes of other people."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from structlog.testing import capture_logs

from app.work.worker import run_jobs
from storage.operators.audit import COMMAND
from streams.tasks import background
from tests.app.accounts.email.mailbox import Mailbox, new_address, refusal, session_of
from tests.running.servers import Databases, new_server
from tests.waiting import until
from vendors.sandbox.server import Running, listening

REFUSALS = {"later": "450 4.2.1", "nobody": "550 5.1.1", "odd": "553 5.1.3", "full": "552 5.2.2"}

BREAKER_OPEN_S = 10
"""For so long, an account gets no emails after its failures. Emails that meet this are tried again after 20 s."""


class Post(Mailbox):
    sandbox: Running

    async def account(self, name: str, url: str, **fields: Any) -> None:
        address = urlsplit(url)
        value = {"host": address.hostname, "port": address.port, "tls": "none", "from": "a@example.com", **fields}
        configs = self.server.services.configs
        await configs.put("default", "mail_accounts", name, value, author="tests", origin=COMMAND)

    async def ask_for_code(self, to: str) -> tuple[int, Any]:
        body = {"email": to, "platform": "ios", "type": "login_email"}
        return await self.post("send_email_verify_code", body)

    async def code_arrives_s(self) -> float:
        """Seconds from a request for a code until the code is in the inbox."""
        loop, to = asyncio.get_running_loop(), new_address()
        began = loop.time()
        assert await self.ask_for_code(to) == (200, None)
        await until(lambda: self.mails(to))
        return loop.time() - began


@pytest.fixture(scope="module")
async def testbed(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Post]:
    folder: Path = tmp_path_factory.mktemp("data")
    async with (
        listening() as sandbox,
        new_server(databases, folder, inbox_url=sandbox.inbox_url, sandbox_url=sandbox.url) as server,
        background(run_jobs(server.services, scheduled=False, poll_s=0.1)),
    ):
        post = Post(server)
        post.sandbox = sandbox
        await post.configure("limits")
        yield post


@pytest.fixture
def post(testbed: Post) -> Post:
    return testbed


@pytest.mark.parametrize("mailbox", REFUSALS)
async def test_twelve_refused_addresses_hold_nobodys_code_back(post: Post, mailbox: str):
    await post.account(mailbox, post.sandbox.inbox_url)
    await post.configure(mail_accounts=[mailbox], code_login=True)
    with capture_logs() as lines:
        for number in range(12):
            assert await post.ask_for_code(f"{mailbox}+{number}@example.com") == (200, None)
        refused = lambda: [line for line in lines if line["event"] == "mail.recipient_refused"]  # noqa: E731
        await until(lambda: len(refused()) == 12)
        assert await post.code_arrives_s() < BREAKER_OPEN_S
    assert {line["final"] for line in refused()} == {mailbox != "later"}
    assert all(f"{mailbox} refused the recipient" in line["error"] for line in refused())
    assert all(line["error"].endswith(f": {REFUSALS[mailbox]}") for line in refused())
    assert f"{mailbox}+" not in str(lines)


async def test_an_address_that_the_server_cannot_write_holds_nobodys_code_back(post: Post):
    await post.account("ascii", post.sandbox.ascii_inbox_url, smtputf8=True)
    await post.configure(mail_accounts=["ascii"], code_login=True)
    with capture_logs() as lines:
        for number in range(12):
            assert await post.ask_for_code(f"jörg{number}@example.com") == (200, None)
        refused = lambda: [line for line in lines if line["event"] == "mail.recipient_refused"]  # noqa: E731
        await until(lambda: len(refused()) == 12)
        assert await post.code_arrives_s() < BREAKER_OPEN_S
    assert all("does not support SMTPUTF8" in line["error"] and line["final"] for line in refused())


async def test_addresses_that_are_not_ascii_need_an_account_that_sends_to_them(post: Post):
    address, session = "jürgen@example.com", session_of(await post.sign_up(new_address()))
    await post.account("plain", post.sandbox.inbox_url)
    await post.configure(mail_accounts=["plain"], code_login=True)
    bind = {"email": address, "platform": "ios", "verify_code": "123456"}
    for result in (
        await post.sign_up(address),
        await post.ask_for_code(address),
        await post.post("email/forgot_password", {"email": address, "platform": "ios"}),
        await post.post("me/email", bind, **session),
        await post.post("me/email", bind, "PUT", **session),
    ):
        assert refusal(result) == (400, "invalid_parameter")
        assert result[1]["error"]["message"].endswith("email must have only ASCII characters before the @")
    await post.account("utf8", post.sandbox.inbox_url, smtputf8=True)
    await post.configure(mail_accounts=["plain", "utf8"], code_login=True)
    assert (await post.sign_up(address))[0] == 200
    await post.code(address)
    await post.configure(mail_accounts=["plain"], code_login=True)
    assert (await post.login(address))[0] == 200


@pytest.mark.parametrize("address", ["a..b@example.com", "a.@example.com", ".a@example.com"])
async def test_dots_that_no_mail_server_accepts_are_named(post: Post, address: str):
    for result in (await post.sign_up(address), await post.ask_for_code(address)):
        assert refusal(result) == (400, "invalid_parameter")
        assert "must not have two dots in a row, or a dot at the beginning" in result[1]["error"]["message"]
