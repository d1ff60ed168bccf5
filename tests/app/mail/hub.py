"""A server of the tests that sends emails by strategies into the local inbox, and its users."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from storage.operators.audit import COMMAND
from tests.app.callers import ask, token, work_off
from tests.running.servers import Server, new_server
from tests.waiting import until
from vendors.sandbox.server import listening

PATH = "/bp/user/me/mail_hub/send"
SUBJECT, TEXT = "Hi {{.CustomVariables.name}}", "Hello {{.CustomVariables.name}}"
HTML = '<p>Hello {{.CustomVariables.name}}</p><img src="{{.TrackingPixelURL}}">'
_IMAGE = re.compile(r'<img src="([^"]*)"')


@dataclass
class Person:
    """A user with a session. `email` is empty if the user has no address."""

    uid: str
    session: dict[str, str]
    email: str


def new_address(name: str = "ada") -> str:
    return f"{name}-{uuid4().hex[:12]}@example.com"


@dataclass
class Hub:
    server: Server

    async def configure(self, kind: str, name: str = "default", **value: Any) -> None:
        configs = self.server.services.configs
        await configs.put("default", kind, name, value, author="tests", origin=COMMAND)

    async def limit(self, **rates: Any) -> None:
        """Set rates. The others of this area have their defaults, and sign-ups are not limited."""
        await self.configure("limits", rates={"signup": {"count": 100_000, "per_s": 1}, **rates})

    async def strategy(self, name: str = "news", **fields: Any) -> str:
        """Write a strategy with the variable `name` whose recipients requests may name."""
        given = {"subject": SUBJECT, "text": TEXT, "html": HTML, "mail_accounts": ["inbox"], "variables": ["name"]}
        await self.configure("mail", name, **(given | {"enable_api_email": True} | fields))
        return name

    async def person(self, *, with_email: bool = True) -> Person:
        if not with_email:
            uid, session = await self.server.login()
            return Person(uid, {"X-Service-Session-Token": session}, "")
        email = new_address()
        body = {"email_password": {"email": email, "password": "correct horse battery"}}
        status, reply = await ask(self.server, "POST", "/bp/user/signup", json=body)
        assert status == 200, reply
        return Person(
            reply["user"]["uid"], {"X-Service-Session-Token": reply["user"]["session"]["session_token"]}, email
        )

    async def send(self, person: Person, name: str = "news", **body: Any) -> tuple[int, Any]:
        return await ask(self.server, "POST", PATH, json={"name": name, **body}, headers=person.session)

    async def send_by_server(self, uid: str, name: str = "news", **body: Any) -> tuple[int, Any]:
        path = f"/bp/server/user/{uid}/mail_hub/send"
        return await ask(self.server, "POST", path, json={"name": name, **body}, headers=token())

    async def mails(self, to: str) -> list[dict[str, Any]]:
        """The emails to an address that have arrived, without those about accounts."""
        headers = {"Accept": "application/json"}
        status, found = await ask(self.server, "GET", "/dev/mail", params={"to": to}, headers=headers)
        assert status == 200, found
        return [mail for mail in found if "List-Unsubscribe" in mail["headers"]]

    async def received(self, to: str) -> dict[str, Any]:
        """Run jobs until the only email to an address has arrived."""
        await self.work_off()
        await until(lambda: self.mails(to), within_s=10)
        [mail] = await self.mails(to)
        return mail

    async def work_off(self) -> None:
        await work_off(self.server.services)

    async def rows(self, columns: str, uid: str) -> list[Any]:
        """Columns of the rows of a user's emails, the oldest first."""
        statement = f"select {columns} from mails where uid = $1 order by mail_id"
        async with self.server.services.database.connection() as conn:
            return [tuple(row) if len(row) > 1 else row[0] for row in await conn.fetch(statement, uid)]

    async def execute(self, statement: str, *arguments: Any) -> None:
        async with self.server.services.database.connection() as conn:
            await conn.execute(statement, *arguments)

    async def make_due(self) -> None:
        """Let the time pass until the next attempts."""
        await self.execute("update procrastinate_jobs set scheduled_at = now() where status = 'todo'")


def pixel_of(mail: dict[str, Any]) -> str:
    """The URL of the pixel of an email."""
    found = _IMAGE.search(mail["html"])
    assert found, mail["html"]
    return found[1].replace("&amp;", "&")


@asynccontextmanager
async def open_hub(databases: Any, folder: Any, **settings: Any) -> AsyncIterator[Hub]:
    async with (
        listening() as sandbox,
        new_server(databases, folder, inbox_url=sandbox.inbox_url, sandbox_url=sandbox.url, **settings) as server,
    ):
        yield Hub(server)
