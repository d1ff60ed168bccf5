"""A server of the tests whose events are reported to a webhook at a socket, and a worker that delivers them."""

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from standardwebhooks import Webhook

from app.work.event_delivery import deliver_events
from storage.configs.rows import ConfigKey
from storage.operators.audit import COMMAND
from streams.tasks import background
from tests.running.servers import Server
from tests.vendors.http.upstream import Respond, Upstream, plain
from tests.waiting import until

SECRET = f"whsec_{base64.b64encode(bytes(range(32))).decode()}"
ALL = ("account", "asset", "purchase")


@dataclass
class Sinks:
    """A server, and the webhook to which its sinks report. `SECRET` signs all calls."""

    server: Server
    webhook: Upstream

    async def add(self, name: str = "crm", *, events: Sequence[str] = ALL, **fields: Any) -> None:
        """Write the config of a sink, which posts to `/<name>` of the webhook unless `fields` say otherwise."""
        target = {} if "stream" in fields else {"url": f"{self.webhook.url}/{name}", "secret": SECRET}
        value = {"events": [*events], **target, **fields}
        await self.server.services.configs.put("default", "events", name, value, author="test", origin=COMMAND)

    async def remove(self, name: str = "crm") -> None:
        key = ConfigKey("default", "events", name)
        await self.server.services.configs.delete(key, author="test", origin=COMMAND)

    def answer(self, *answers: Respond) -> None:
        """Let the webhook answer so from now on, the last one to all further calls."""
        self.webhook.seen.clear()
        self.webhook.respond_with(*answers)

    def calls(self, name: str = "crm") -> list[dict[str, Any]]:
        """The bodies of the calls for a sink, in their order. Their signatures are verified."""
        seen = [call for call in self.webhook.seen if call.path == f"/{name}"]
        bodies: list[dict[str, Any]] = [Webhook(SECRET).verify(call.body, dict(call.headers)) for call in seen]
        assert [body["id"] for body in bodies] == [call.headers["webhook-id"] for call in seen]
        return bodies

    async def got(self, count: int, name: str = "crm") -> list[dict[str, Any]]:
        """The bodies of the calls for a sink, of which there are to be `count`."""
        await until(lambda: len(self.calls(name)) >= count, within_s=60)
        calls = self.calls(name)
        assert len(calls) == count, calls
        return calls

    async def rows(self, columns: str = "event", *, where: str = "true") -> list[Any]:
        statement = f"select {columns} from reported_events where {where} order by position"
        async with self.server.services.database.connection() as conn:
            return [tuple(row) for row in await conn.fetch(statement)]

    async def has_rows(self, *rows: Any, columns: str = "event") -> None:
        """Wait until these are the stored events."""

        async def equal() -> bool:
            return await self.rows(columns) == [*rows]

        await until(equal, within_s=60)

    async def execute(self, statement: str) -> None:
        async with self.server.services.database.connection() as conn:
            await conn.execute(statement)

    async def make_due(self) -> None:
        """Let the time pass until the next attempts."""
        await self.execute("update reported_events set due_at = now() where due_at > now()")

    @asynccontextmanager
    async def delivering(self, **times: float) -> AsyncIterator[None]:
        async with background(deliver_events(self.server.services, poll_s=0.05, **times)):
            yield


def changes(bodies: Sequence[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """What account events say: the change and the platform."""
    return [(body["data"]["change"], body["data"]["platform"]) for body in bodies]


OK = plain(204)
