"""The testbed: that of the kills with one process and one worker, with the fast vendor for streams."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from aiohttp import ClientSession, TCPConnector

from app.http.callers.tokens import make_server_token
from bench.deployment import DeploymentSpec, make_tokens, put_all, start_vendor, strategies
from bench.kills.testbed import APP, KillsTestbed
from bench.kills.testbed import open_testbed as open_kills_testbed
from bench.machine import Usage
from bench.soak.transcript import Transcript
from bench.store_counters import Reading, StoreCounters, count_statements, open_counters
from deploy.running import Failed
from storage.accounts import emails
from storage.postgres.database import Database, open_database
from streams.wire.codec import dumps, loads

BOARD, MAIL = "weekly", "welcome"
FIRST, SPEECH = "1x0", "50x20"
"""Models of the vendor: an answer that takes no time, and speech of 5 s."""
DURABLE, SPOKEN = "durable", "spoken"


@dataclass(frozen=True, slots=True)
class User:
    uid: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"X-Service-App-Id": APP, "X-Service-Session-Token": self.token}


@dataclass(frozen=True, slots=True)
class Ended:
    """A stream that has ended with `end`."""

    conversation_id: str
    size: int
    """Bytes of the response bodies."""


@dataclass(frozen=True, slots=True)
class OperationsTestbed:
    """The running testbed. `model`: the vendor's answers. `users`: users whose sessions no process has seen yet."""

    server: KillsTestbed
    counters: StoreCounters
    model: str
    deltas: int
    users: list[User]
    _http: ClientSession
    _database: Database
    _objects: Path

    async def read(self) -> Reading:
        """Return the counters of the stores, of the processes and of the stored files."""
        found = {**await self.counters.read(), "objects": float(_size(self._objects))}
        stores = self.server.stores.processes
        for name, process in {
            "node": self.server.parent,
            "worker": self.server.workers[0],
            "Valkey": stores["Valkey"],
            "PostgreSQL": stores["PostgreSQL"],
        }.items():
            found[f"cpu {name}"] = Usage.of([process.pid]).cpu_s
        return found

    async def ask(
        self, method: str, path: str, body: Any = None, *, user: User | None = None, scope: str = ""
    ) -> Any:
        """Return the answer to a request of a user, or of the app's server if there is a `scope`."""
        headers = {"X-Service-App-Id": APP} if user is None else user.headers
        if scope:
            headers = {"X-Service-Auth-Token": self._server_token(scope)}
        async with self._http.request(method, self.server.url + path, json=body, headers=headers) as response:
            content = await response.read()
        if response.status != 200:
            raise Failed(f"{method} {path}: {response.status} {content[:300].decode(errors='replace')}")
        return {} if not content else loads(content)

    async def at_card_platform(self, path: str, **form: str) -> dict[str, Any]:
        url = f"{self.server.sandbox_url}/stripe/v1/{path}"
        headers = {"Authorization": "Bearer sandbox"}
        async with self._http.post(url, data=form, headers=headers, raise_for_status=True) as response:
            found: dict[str, Any] = await response.json()
            return found

    async def stream(self, user: User, path: str, body: Any, *, text: str = "", cut: bool = False) -> Ended:
        """Read a stream to its end. `cut`: drop the connection once, after half of the deltas, and resume."""
        transcript, size = Transcript(), 0
        transcript.begin()
        url, data = self.server.url + path, dumps(body) + text.encode()
        headers = {**user.headers, "Content-Type": "application/json"}
        async with self._http.post(url, data=data, headers=headers) as response:
            if response.status != 200:
                raise Failed(f"{path}: {response.status} {await response.text()}")
            async for content in response.content.iter_any():
                size += len(content)
                transcript.feed(content)
                if cut and transcript.last_id > self.deltas / 2:
                    response.close()
                    break
        if cut:
            size += await self._resume(user, response.headers["X-Service-Stream-Id"], transcript)
        if transcript.outcome != "end" or transcript.faults:
            raise Failed(f"{path}: {transcript.outcome or 'no end'} {transcript.faults}")
        return Ended(response.headers.get("X-Service-Conversation-Id", ""), size)

    async def _resume(self, user: User, stream_id: str, transcript: Transcript) -> int:
        transcript.begin(after=transcript.last_id)
        headers = {**user.headers, "Last-Event-ID": str(transcript.last_id)}
        url = f"{self.server.url}/bp/ai/stream/{stream_id}"
        async with self._http.get(url, headers=headers, raise_for_status=True) as response:
            content = await response.read()
        transcript.feed(content)
        return len(content)

    async def prove_address(self, user: User) -> None:
        """Give a user a proven email address."""
        async with self._database.transaction() as conn:
            address, now = f"{user.uid}@bench.example", datetime.now(UTC)
            await emails.set_current(conn, APP, user.uid, address=address, old="", now=now)

    def _server_token(self, scope: str) -> str:
        key = self.server.env["PARLEY_SERVER_KEY"]
        return make_server_token(kid="development", alg="HS256", key=key, app_id=APP, scope=scope, jti=uuid4().hex)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@asynccontextmanager
async def open_testbed(folder: Path, *, users: int, deltas: int, pace_ms: int) -> AsyncIterator[OperationsTestbed]:
    """Run the testbed until the block ends. All data goes to `folder`."""
    model = f"{deltas}x{pace_ms}"
    await count_statements(folder / "data")
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        server = await enter(open_kills_testbed(folder, processes=1, workers=1, lost=0))
        _, vendor_url = await start_vendor(stack)
        await put_all(server.url, server.env["PARLEY_ADMIN_TOKEN"], _configs(model, vendor_url), app=APP)
        await make_tokens(users, server.env, folder / "users", app=APP)
        lines = (folder / "users").read_text().splitlines()
        yield OperationsTestbed(
            server,
            await enter(open_counters(server.stores)),
            model,
            deltas,
            [User(*line.split()) for line in lines],
            await enter(ClientSession(connector=TCPConnector(limit=0), trust_env=False)),
            await enter(open_database(server.stores.database_url, max_size=4)),
            folder / "data" / "objects",
        )


def _configs(model: str, vendor_url: str) -> Mapping[str, Any]:
    configs = strategies(DeploymentSpec(frozenset({model, SPEECH, FIRST})), vendor_url, "")
    turn = configs[f"conversation/{model}"]
    configs[f"conversation/{DURABLE}"] = {**turn, "durable": True}
    configs[f"conversation/{SPOKEN}"] = {**turn, "speech": SPEECH}
    return configs
