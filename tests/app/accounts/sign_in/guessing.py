"""Calls of many clients that guess passwords and codes, each at the address that a proxy reports for it."""

from typing import Any
from uuid import uuid4

from storage.accounts.codes import LOGIN_EMAIL, CodeKind
from storage.operators.audit import COMMAND
from tests.app.callers import ask
from tests.running.servers import Server

HOME = "198.51.100.7"
LOGIN, SIGNUP, BIND, RESET = (
    "/bp/user/login",
    "/bp/user/signup",
    "/bp/user/me/email",
    "/bp/user/email/reset_password",
)
WIDE = {"count": 100_000, "per_s": 1}


class Calls:
    """Calls of clients at addresses that a proxy reports, with codes as if they had been sent."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def configure(self, kind: str, **value: Any) -> None:
        await self.server.services.configs.put("default", kind, "default", value, author="tests", origin=COMMAND)

    async def limit(self, **rates: dict[str, float]) -> None:
        await self.configure("limits", rates={"signup": WIDE, "login_failures": WIDE} | rates)

    async def code(self, kind: CodeKind, target: str) -> str:
        services = self.server.services
        async with services.database.transaction() as conn:
            now = services.clock.now("default")
            return await services.codes.issue(conn, "default", kind, target, now=now, for_s=600)

    async def post(self, path: str, body: Any, address: str = HOME, **headers: str) -> tuple[int, Any]:
        return await ask(self.server, "POST", path, json=body, headers={"X-Forwarded-For": address} | headers)

    async def status(self, path: str, body: Any, address: str = HOME, **headers: str) -> int:
        return (await self.post(path, body, address, **headers))[0]

    async def new_owner(self, *, address: str = HOME) -> str:
        """Let a user log in by code. Return the email address."""
        email = new_email()
        assert await self.status(LOGIN, by_code(email, await self.code(LOGIN_EMAIL, email)), address) == 200
        return email


def new_email() -> str:
    return f"{uuid4().hex[:12]}@example.com"


def by_code(email: str, code: str) -> dict[str, Any]:
    return {"email_code": {"email": email, "verify_code": code}}


def by_phone(number: str, code: str) -> dict[str, Any]:
    return {"phone": {"phone_number": number, "verify_code": code}}


def other(code: str) -> str:
    """Return a wrong code."""
    return f"{(int(code) + 1) % 10**6:06}"
