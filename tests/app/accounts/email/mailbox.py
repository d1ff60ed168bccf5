"""A server with a worker and the local inbox, for tests of email addresses."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from app.work.worker import run_jobs
from storage.accounts.password_resets import SendReset
from storage.accounts.sms import SendSms
from storage.mail.mail import SendMail
from storage.operators.audit import COMMAND
from storage.secrets import Keyring
from streams.tasks import background
from streams.wire.codec import rfc3339
from tests.app.accounts.people import ask
from tests.running.servers import Databases, Server, new_server
from tests.waiting import until
from vendors.sandbox.server import listening

PASSWORD, NEW_PASSWORD = "correct horse battery", "staple gun at dawn"
_LINK = re.compile(r"https?://\S+")
_UNSENT = "select count(*) from procrastinate_jobs where task_name = any($1) and status in ('todo', 'doing')"
_WIDE = {"count": 100_000, "per_s": 1}
_RATES = ("email_minute", "email_day", "email_address", "signup", "login_network", "login_address", "detect")


def new_address() -> str:
    return f"{uuid4().hex[:12]}@example.com"


_SEALED: dict[str, Callable[[Any, Keyring], object]] = {
    SendMail.task: lambda args, keyring: SendMail.of(args).content(keyring),
    SendReset.task: lambda args, keyring: SendReset.of(args).request(keyring),
    SendSms.task: lambda args, keyring: SendSms.of(args).content(keyring),
}


class JobText(NamedTuple):
    task: str
    text: str
    """Its message, with what is encrypted there."""


class Mailbox:
    """Calls of a client, and the emails that it gets."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def configure(self, kind: str = "email", *, app: str = "default", **value: Any) -> None:
        if kind == "email":
            value = {"mail_accounts": ["inbox"], **value}
        if kind == "limits":
            value = {"rates": dict.fromkeys(_RATES, _WIDE) | value}
        await self.server.services.configs.put(app, kind, "default", value, author="tests", origin=COMMAND)

    async def post(self, path: str, body: Any, method: str = "POST", **headers: Any) -> tuple[int, Any]:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return await ask(self.server, method, f"/bp/user/{path}", json=body, headers=given)

    async def get(self, path: str, **options: Any) -> tuple[int, Any]:
        return await ask(self.server, "GET", path, **options)

    async def mails(self, to: str) -> list[dict[str, Any]]:
        status, found = await self.get("/dev/mail", params={"to": to}, headers={"Accept": "application/json"})
        assert status == 200, found
        return found

    async def mail(self, to: str, *, nth: int = 1) -> dict[str, Any]:
        """Wait for the nth mail to an address."""

        async def arrived() -> bool:
            return len(await self.mails(to)) >= nth

        await until(arrived, within_s=60)
        return (await self.mails(to))[-nth]

    async def all_sent(self) -> None:
        """Wait until no mail is left to be sent, nor a job that may send one."""
        await until(self._has_sent_all, within_s=60)

    async def _has_sent_all(self) -> bool:
        async with self.server.services.database.connection() as conn:
            left = await conn.fetchval(_UNSENT, [SendMail.task, SendReset.task])
        return bool(left == 0)

    async def jobs(self) -> list[JobText]:
        """All jobs."""
        keyring = self.server.services.keyring
        async with self.server.services.database.connection() as conn:
            rows = await conn.fetch("select task_name, args from procrastinate_jobs order by id")
        found = []
        for task, args in rows:
            content = _SEALED[task](args, keyring) if task in _SEALED else ""
            found.append(JobText(task, f"{args} {content}"))
        return found

    async def code(self, to: str, kind: str = "login_email", *, nth: int = 1) -> str:
        body = {"email": to, "platform": "ios", "type": kind}
        assert await self.post("send_email_verify_code", body) == (200, None)
        return re.search(r"\b\d{6}\b", (await self.mail(to, nth=nth))["text"])[0]

    async def sign_up(self, email: str, password: str = PASSWORD, **more: Any) -> tuple[int, Any]:
        return await self.post("signup", {"email_password": {"email": email, "password": password, **more}})

    async def login(self, email: str, password: str = PASSWORD) -> tuple[int, Any]:
        return await self.post("login", {"email_password": {"email": email, "password": password}})

    async def code_login(self, email: str, code: str) -> tuple[int, Any]:
        return await self.post("login", {"email_code": {"email": email, "verify_code": code}})

    async def me(self, session: dict[str, str]) -> tuple[int, Any]:
        return await self.get("/bp/user/me", headers=session)

    async def reset_code(self, email: str, *, nth: int = 1) -> str:
        body = {"email": email, "platform": "website"}
        assert await self.post("email/forgot_password", body) == (200, None)
        return link_in(await self.mail(email, nth=nth)).partition("random_code=")[2]

    async def later(self, seconds: float) -> None:
        now = self.server.services.clock.now("default") + timedelta(seconds=seconds)
        await ask(self.server, "POST", "/dev/clock", json={"app": "default", "at": rfc3339(now)})


def link_in(mail: dict[str, Any], *, nth: int = 0) -> str:
    return unescape(_LINK.findall(mail["text"])[nth])


def path_of(link: str) -> str:
    return "/" + link.split("/", 3)[3]


async def open_not_me(box: Mailbox, mail: dict[str, Any], **headers: str) -> tuple[str, str]:
    """Open the link "this was not me" in an email and press its button. Return the texts of both pages."""
    url = next(link_in(mail, nth=nth) for nth in (0, 1) if "/account/not-me" in link_in(mail, nth=nth))
    async with box.server.http.get(url, headers=headers) as response:
        assert (response.status, response.content_type) == (200, "text/html")
        before = await response.text()
    token = parse_qs(urlsplit(url).query)["token"][0]
    async with box.server.http.post(f"{box.server.url}/account/not-me", data={"token": token}) as response:
        assert response.status == 200
        return before, await response.text()


async def new_owner(box: Mailbox) -> tuple[str, dict[str, str]]:
    """Sign up with an address and a password, and prove the address. Return it, and the header of the session."""
    address = new_address()
    session = session_of(await box.sign_up(address))
    assert (await box.get(path_of(link_in(await box.mail(address)))))[0] == 200
    return address, session


async def change_address(box: Mailbox, session: dict[str, str], new: str, *, nth: int = 1) -> None:
    """Change the address of a user, and open the link that proves the new one, in the nth mail to it."""
    assert await box.post("me/email", {"email": new, "platform": "ios"}, "PUT", **session) == (200, None)
    assert await box.get(path_of(link_in(await box.mail(new, nth=nth)))) == (200, {})


def session_of(result: tuple[int, Any]) -> dict[str, str]:
    status, reply = result
    assert status == 200, reply
    return {"X-Service-Session-Token": reply["user"]["session"]["session_token"]}


def refusal(result: tuple[int, Any]) -> tuple[int, str]:
    status, reply = result
    return status, reply["error"]["error_type"]


@asynccontextmanager
async def open_mailbox(databases: Databases, data_dir: Path, **settings: Any) -> AsyncIterator[Mailbox]:
    async with (
        listening() as sandbox,
        new_server(databases, data_dir, inbox_url=sandbox.inbox_url, sandbox_url=sandbox.url, **settings) as server,
        background(run_jobs(server.services, scheduled=False, poll_s=0.1)),
    ):
        box = Mailbox(server)
        await box.configure("limits")
        yield box
