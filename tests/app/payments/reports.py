"""The events that a server stores for its sinks."""

from collections.abc import Sequence
from json import loads  # noqa: TID251 - an independent reader
from typing import Any

from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.running.servers import Server


async def add_sink(server: Server, *, events: Sequence[str] = ("purchase",)) -> None:
    """Write the config of a sink. Without a worker, its events stay in the database."""
    value = {"stream": "tests", "events": [*events]}
    await server.services.configs.put("default", "events", "tests", value, author="test", origin=COMMAND)


async def reported(server: Server, uid: str, event: str = "purchase") -> list[dict[str, Any]]:
    """The data of the events of a user, in their order."""
    statement = "select data from reported_events where uid = $1 and event = $2 order by position"
    async with server.services.database.connection() as conn:
        return [loads(dumps(row["data"])) for row in await conn.fetch(statement, uid, event)]


def brief(events: Sequence[dict[str, Any]]) -> list[tuple[str, str, int]]:
    """Of purchases: the kind, the payment and the amount."""
    return [(event["kind"], event["transaction_id"], event["amount"]) for event in events]
