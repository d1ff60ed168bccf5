"""Users who play for the ranks of a board."""

from datetime import datetime
from typing import Any
from uuid import uuid4

from storage.operators.audit import COMMAND
from streams.wire.codec import from_rfc3339
from tests.app.callers import ask, token
from tests.running.servers import Server
from tests.waiting import until

UPLOAD, QUERY = "/bp/leaderboard/data", "/bp/leaderboard"


class Boards:
    """A board of a server, with a name of its own, which configs and requests use unless they say another."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.name = f"board-{uuid4().hex[:8]}"
        self.sessions: dict[str, dict[str, str]] = {}

    @classmethod
    def like(cls, other: "Boards") -> "Boards":
        """A further board, for the same users."""
        made = cls(other.server)
        made.sessions = other.sessions
        return made

    async def configure(self, name: str | None = None, **value: Any) -> None:
        await self.put_config("leaderboards", name or self.name, value)

    async def put_config(self, kind: str, name: str, value: dict[str, Any]) -> None:
        put = self.server.services.configs.put
        await put("default", kind, name, value, author="test", origin=COMMAND)

    async def without_limits(self) -> None:
        await self.put_config("limits", "default", {"rates": {"board_upload": {"count": 1_000_000, "per_s": 1}}})

    async def user(self) -> str:
        uid, session = await self.server.login()
        self.sessions[uid] = {"X-Service-Session-Token": session}
        return uid

    async def users(self, count: int) -> list[str]:
        return [await self.user() for _ in range(count)]

    async def upload(self, uid: str, score: Any, *, name: str | None = None, **data: Any) -> tuple[int, Any]:
        body = {"name": name or self.name, "data": {"score": score, **data}}
        return await ask(self.server, "POST", UPLOAD, json=body, headers=self.sessions[uid])

    async def put(self, uid: str, score: Any, **data: Any) -> dict[str, Any]:
        """Upload a score, which must be accepted."""
        status, reply = await self.upload(uid, score, **data)
        assert status == 200, reply
        [posted] = reply["leaderboard"]
        return dict(posted)

    async def query(self, uid: str, **body: Any) -> tuple[int, Any]:
        json = {"name": self.name, "from": 1, "to": 100, **body}
        return await ask(self.server, "POST", QUERY, json=json, headers=self.sessions[uid])

    async def read(self, uid: str, **body: Any) -> dict[str, Any]:
        """Query the board, which must succeed."""
        status, reply = await self.query(uid, **body)
        assert status == 200, reply
        return dict(reply["leaderboard"])

    async def ranked(self, uid: str, **body: Any) -> list[str]:
        """The users on the board in the order of their ranks."""
        found = (await self.read(uid, **body))["rank_data"]
        assert [entry["rank"] for entry in found] == list(
            range(body.get("from", 1), body.get("from", 1) + len(found))
        )
        return [entry["member"] for entry in found]

    async def s2s(self, uid: str, path: str, body: Any, **claims: str) -> tuple[int, Any]:
        claims = {"scope": "leaderboards", **claims}
        return await ask(self.server, "POST", f"/bp/server/user/{uid}{path}", json=body, headers=token(**claims))

    async def deactivate(self, uid: str) -> None:
        """Deactivate a user for good."""
        for step in ("", "/confirm"):
            path = f"/bp/user/me/deactivate{step}"
            assert await ask(self.server, "POST", path, headers=self.sessions[uid]) == (200, None)

    async def now(self) -> datetime:
        return self.server.services.clock.now("default")

    async def move_to(self, at: str | datetime) -> None:
        """Move the clock of the app to a time."""
        moment = from_rfc3339(at) if isinstance(at, str) else at
        body = {"app": "default", "at": moment.isoformat()}
        status, reply = await ask(self.server, "POST", "/dev/clock", json=body)
        assert status == 200, reply

    async def keys(self) -> list[bytes]:
        """The keys of the index of this board."""
        valkey = self.server.services.valkey
        pattern = f"{self.server.services.settings.redis_prefix}*:board:{self.name}*"
        return [key async for key in valkey.client.scan_iter(pattern, count=10_000)]

    async def is_indexed(self) -> bool:
        """Whether the index of the board is ready."""
        client = self.server.services.valkey.client
        for key in await self.keys():
            if key.endswith(b":changes") and await client.hget(key, "") == b"ready":
                return True
        return False

    async def indexed(self) -> None:
        await until(self.is_indexed)

    async def fetch(self, statement: str, *values: Any) -> list[Any]:
        async with self.server.services.database.connection() as conn:
            return list(await conn.fetch(statement, *values))
