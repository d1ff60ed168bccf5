"""The job that sends an email, and the local inbox that keeps emails in development."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.utils import getaddresses

import pytest

from app.work.worker import run_jobs
from storage.jobs.jobs import enqueue
from storage.mail.mail import MailContent, SendMail
from storage.operators.audit import COMMAND
from streams.tasks import background
from tests.running.servers import Server, new_server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import listening


@dataclass
class Post:
    """A server with a worker and the local inbox."""

    server: Server

    async def account(self, name: str, **value) -> str:
        given = {"host": "{inbox}", "tls": "none", "from": "Ada <ada@example.com>"} | value
        configs = self.server.services.configs
        await configs.put("default", "mail_accounts", name, given, author="tests", origin=COMMAND)
        return name

    async def send(self, to: str, *accounts: str, **more) -> None:
        content = MailContent(to=to, subject="Grüße", text="Hello\n", accounts=list(accounts), **more)
        services = self.server.services
        async with services.database.transaction() as conn:
            await enqueue(conn, SendMail.seal("default", content, keyring=services.keyring))

    async def mails(self, to: str) -> list[dict]:
        async with self.server.http.get(
            f"{self.server.url}/dev/mail", params={"to": to}, headers={"Accept": "application/json"}
        ) as response:
            assert response.status == 200
            return await response.json()

    async def received(self, to: str) -> dict:
        await until(lambda: self.mails(to))
        [mail] = await self.mails(to)
        return mail

    async def jobs(self) -> list:
        async with self.server.services.database.connection() as conn:
            return await conn.fetch("select status, attempts, args from procrastinate_jobs")


@pytest.fixture(scope="module")
async def testbed(databases, tmp_path_factory) -> AsyncIterator[Server]:
    data_dir = tmp_path_factory.mktemp("data")
    async with (
        listening() as sandbox,
        new_server(databases, data_dir, inbox_url=sandbox.inbox_url, sandbox_url=sandbox.url) as running,
    ):
        yield running


@pytest.fixture
async def post(testbed: Server) -> AsyncIterator[Post]:
    async with background(run_jobs(testbed.services, scheduled=False, poll_s=0.1)):
        yield Post(testbed)
        async with testbed.services.database.connection() as conn:
            await conn.execute("delete from procrastinate_jobs")


async def test_a_mail_has_its_parts_and_headers(post: Post):
    await post.send("a@example.com", "inbox", html="<p>Hello</p>", language="de", sender="Bob <bob@example.com>")
    mail = await post.received("a@example.com")
    assert set(mail) == {"id", "to", "subject", "text", "html", "headers", "at"}
    assert (mail["subject"], mail["text"].strip(), mail["html"].strip()) == ("Grüße", "Hello", "<p>Hello</p>")
    headers = mail["headers"]
    assert (headers["From"], headers["Content-Language"]) == ("Bob <bob@example.com>", "de")
    assert headers["Message-ID"].endswith("@127.0.0.1>")
    assert headers["Auto-Submitted"] == "auto-generated"


NAMES = [
    "Doe, Jane",
    f"{'Talk and learn with many other people, ' * 3}: every day; team@example.net",
    "क्\u200dष\xa0é\u3000x, ",
    "=?utf-8?q?Eve?=",
]


async def test_a_name_is_one_sender_whatever_it_contains(post: Post):
    for number, name in enumerate(NAMES):
        account, to = (
            await post.account(f"named{number}", **{"from": f'"{name}" <ada@example.com>'}),
            f"n{number}@example.com",
        )
        await post.send(to, account)
        read = (await post.received(to))["headers"]["From"]
        [(said, address)] = getaddresses([read])
        assert address == "ada@example.com"
        assert "".join(said.split()) == "".join(("Eve" if "=?" in name else name).split())


async def test_accounts_are_tried_in_order(post: Post):
    deferring = await post.account("deferring", username=key_of(fault="unavailable"), password="any")
    refusing = await post.account("refusing", username=key_of(fault="unauthorized"), password="any")
    closed = await post.account("closed", host="127.0.0.1", port=9)
    without_tls = await post.account("without-tls", tls="starttls")
    await post.send("b@example.com", deferring, refusing, closed, without_tls, "missing", "inbox")
    assert (await post.received("b@example.com"))["headers"]["From"].startswith("Parley")


async def test_a_mail_is_sent_again_until_an_account_accepts_it(post: Post):
    name = await post.account("later", username=key_of(fault="unavailable"), password="any")
    await post.send("c@example.com", name)

    async def failed_once():
        return [job for job in await post.jobs() if job["attempts"] == 1]

    await until(failed_once)
    [job] = await failed_once()
    assert "c@example.com" not in str(job["args"])
    await post.account("later")
    async with post.server.services.database.connection() as conn:
        await conn.execute("update procrastinate_jobs set scheduled_at = now()")
    await post.received("c@example.com")


async def test_a_mail_to_an_address_that_the_server_does_not_know_is_not_sent_again(post: Post):
    await post.send("nobody@example.com", "inbox")

    async def ended():
        return not await post.jobs()

    await until(ended)
    assert await post.mails("nobody@example.com") == []


async def test_an_account_sends_no_more_mails_per_minute_than_it_may(post: Post):
    first = await post.account("slow", per_minute=1, **{"from": "slow@example.com"})
    for to in ("d@example.com", "e@example.com"):
        await post.send(to, first, "inbox")
    senders = [(await post.received(to))["headers"]["From"] for to in ("d@example.com", "e@example.com")]
    assert sorted(sender.partition(" ")[0] for sender in senders) == ["Parley", "slow@example.com"]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"from": "Ada <ada@example.com>\r\nBcc: eve@example.com"}, "from"),
        ({"from": "ada@example.com, eve@example.com"}, "from"),
        ({"from": "Ada"}, "from"),
        ({"from": "Team: ada@example.com, eve@example.com;"}, "from"),
        ({"from": "News: Ada <ada@example.com>"}, "from"),
        ({"from": "Ada\u2028<ada@example.com>"}, "from"),
        ({"host": "mail.example.com/x"}, "host"),
        ({"port": 0}, "port"),
        ({"tls": "maybe"}, "tls"),
        ({"username": "ada"}, ""),
    ],
)
async def test_an_account_that_cannot_send_is_refused_when_it_is_written(post: Post, value, path):
    given = {"host": "mail.example.com", **value}
    token = post.server.services.settings.admin_token.get_secret_value()
    async with post.server.http.post(
        f"{post.server.url}/admin/api/configs/default/mail_accounts/x/validate",
        json={"value": given},
        headers={"Authorization": f"Bearer {token}"},
    ) as response:
        reply = await response.json()
    assert reply["valid"] is False
    assert reply["errors"][0]["path"] == path


async def test_browsers_get_a_page_in_which_no_script_of_an_email_runs(post: Post):
    await post.send("f@example.com", "inbox", html="<script>alert(1)</script>")
    await post.received("f@example.com")
    url = f"{post.server.url}/dev/mail"
    async with post.server.http.get(url, headers={"Accept": "text/html,*/*"}) as response:
        text, policy = await response.text(), response.headers["Content-Security-Policy"]
    assert response.content_type == "text/html"
    assert "f@example.com" in text
    assert "<script>" not in text  # Only the module of the page is loaded.
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "default-src 'none'; script-src 'self';" in policy


async def test_only_development_servers_show_mails(databases, tmp_path):
    async with (
        new_server(databases, tmp_path, env="production") as running,
        running.http.get(f"{running.url}/dev/mail") as response,
    ):
        assert response.status == 404
