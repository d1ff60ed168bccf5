"""A server whose strategy `pictures` has the sandbox as its image host."""

from typing import Any
from uuid import uuid4

from storage.assets.entries import Entry
from storage.assets.ledger import post
from storage.operators.audit import COMMAND
from tests.app.callers import ask
from tests.running.servers import Server
from tests.waiting import until
from vendors.sandbox.faults import key_of
from vendors.sandbox.server import Running

IMAGINE = "/bp/ai/imagine"
PNG = b"\x89PNG\r\n\x1a\n"
_DUE = "update procrastinate_jobs set scheduled_at = null where status = 'todo' and task_name = 'poll_image_task'"


class Studio:
    def __init__(self, server: Server, sandbox: Running) -> None:
        self.server = server
        self.sandbox = sandbox
        self.sessions: dict[str, dict[str, str]] = {}
        self.account = f"host-{uuid4().hex[:8]}"

    async def configure(self, *, key: str = "sandbox", path: str = "/midjourney", **strategy: Any) -> None:
        """Write the account and the strategy. `key` may name a fault of the host."""
        base_url = f"{self.sandbox.url}{path}"
        account = {"platform": "image_host", "base_url": base_url, "api_key": key}
        await self.put("vendor_accounts", self.account, account | {"breaker": {"min_calls": 1_000_000}})
        await self.put("images", "pictures", {"account": self.account, "at_once": 100, **strategy})

    async def faulty(self, **fault: Any) -> None:
        await self.configure(key=key_of(retry_after_s=0.01, **fault))

    async def put(self, kind: str, name: str, value: dict[str, Any]) -> None:
        await self.server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)

    async def user(self) -> str:
        uid, session = await self.server.login()
        self.sessions[uid] = {"X-Service-Session-Token": session}
        return uid

    async def grant(self, uid: str, units: int) -> None:
        """Give a user units of the asset `coins`."""
        services = self.server.services
        entry = Entry(f"test:{uuid4().hex}", "grant", "coins", "consumable", quantity=units)
        async with services.database.transaction() as conn:
            now = services.clock.now("default")
            await post(conn, "default", uid, entry=entry, now=now, sinks=services.sinks)

    async def ask(self, uid: str, type: str, data: Any, *, headers: Any = None, **body: Any) -> tuple[int, Any]:  # noqa: A002
        json = {"strategy": "pictures", "type": type, "data": data, **body}
        given = {**self.sessions[uid], **(headers or {})}
        return await ask(self.server, "POST", IMAGINE, json=json, headers=given)

    async def begin(self, uid: str, type: str, data: Any, **options: Any) -> dict[str, Any]:  # noqa: A002
        """Begin a task, which must be accepted. Return the answer."""
        status, reply = await self.ask(uid, type, data, **options)
        assert status == 200, reply
        return dict(reply)

    async def read(self, uid: str, task_id: str) -> dict[str, Any]:
        status, reply = await ask(self.server, "GET", f"{IMAGINE}/{task_id}", headers=self.sessions[uid])
        assert status == 200, reply
        return dict(reply)

    async def ended(self, uid: str, task_id: str) -> dict[str, Any]:
        """Return a task once it has ended. Its jobs are due at once; a worker must run."""
        reply: dict[str, Any] = {}

        async def has_ended() -> bool:
            nonlocal reply
            await self.hurry()
            reply = await self.read(uid, task_id)
            return reply["data"]["status"] in {"finished", "failed"}

        await until(has_ended, every_s=0.05)
        return reply

    async def hurry(self) -> None:
        async with self.server.services.database.connection() as conn:
            await conn.execute(_DUE)

    async def make(self, uid: str, type: str, data: Any, **options: Any) -> dict[str, Any]:  # noqa: A002
        """Begin a task, and return its `data` once it has ended."""
        begun = await self.begin(uid, type, data, **options)
        return dict((await self.ended(uid, begun["data"]["task_id"]))["data"])

    async def download(self, url: str) -> tuple[str, bytes]:
        async with self.server.http.get(url) as response:
            assert response.status == 200
            return response.content_type, await response.read()

    def asked(self) -> list[dict[str, Any]]:
        """What the host was asked to make."""
        return [call.asked for call in self.sandbox.bill.since(0) if call.stage == "create"]

    def charged(self) -> int:
        return sum(call.billed["images"] for call in self.sandbox.bill.since(0))

    async def run(self, statement: str, *values: Any) -> list[Any]:
        async with self.server.services.database.connection() as conn:
            return list(await conn.fetch(statement, *values))
