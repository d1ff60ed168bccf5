"""Read the stored turns of a soak after the load: through the API as users do, and directly from the stores."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import asyncpg
from aiohttp import ClientError, ClientSession
from redis.asyncio import Redis

from bench.deployment import APP
from bench.soak.observations import AcknowledgedTurn
from streams.wire.codec import loads

_AT_ONCE = 8
_PAGE = 100
_ROWS_AT_ONCE = 1_000
_RECHECK_S = 1
DEFAULT_PREFIX = "parley:"
"""The prefix of all keys in Valkey unless `PARLEY_REDIS_PREFIX` sets another one."""
Key = tuple[str, int]
"""Conversation id and record id."""


@dataclass(frozen=True, slots=True)
class Record:
    """The stored record of a turn. The history has no stream ids, so `stream_id` is empty if read from it."""

    status: str
    user_text: str
    text_sha256: str
    stream_id: str = ""

    @classmethod
    def of(cls, status: str, content: Sequence[Mapping[str, Any]], stream_id: str = "") -> "Record":
        """Create a record from its messages (interface §2.12)."""
        texts = {
            role: "".join(
                item["text"]
                for message in content
                if message["role"] == role
                for item in message["content"]
                if item["type"] == "text"
            )
            for role in ("user", "assistant")
        }
        return cls(status, texts["user"], sha256(texts["assistant"].encode()).hexdigest(), stream_id)


@dataclass(slots=True)
class Leftovers:
    """State that ended turns should not have left behind."""

    running: list[Key] = field(default_factory=list)
    """Records whose status is still `running`."""
    queued: int = 0
    """Number of entries in Valkey's retry queues, which are not yet written to PostgreSQL."""
    turns: list[str] = field(default_factory=list)
    """Valkey keys of turns that are still locked."""
    slots: list[str] = field(default_factory=list)
    """Streams that still count against the limit of a user, each as Valkey key and stream id."""

    @property
    def is_empty(self) -> bool:
        return not (self.running or self.queued or self.turns or self.slots)


async def read_rows(database_url: str) -> dict[Key, Record]:
    """Read all records from PostgreSQL."""
    records_by_key: dict[Key, Record] = {}
    conn = await asyncpg.connect(database_url)
    try:
        async with conn.transaction():
            query = (
                "select conversation_id, record_id, status, stream_id, content::text as content "
                "from conversation_records where app_id = $1"
            )
            async for row in conn.cursor(query, APP, prefetch=_ROWS_AT_ONCE):
                content = loads(row["content"])
                key = (row["conversation_id"], row["record_id"])
                records_by_key[key] = Record.of(row["status"], content, row["stream_id"])
    finally:
        await conn.close()
    return records_by_key


async def read_history(
    url: str, turns: Iterable[AcknowledgedTurn], *, headers: Callable[[int], dict[str, str]]
) -> dict[Key, Record]:
    """Read the records of all conversations in `turns` through the API. `headers` returns the headers of a user.

    Conversations that cannot be read are omitted.
    """
    users = {turn.conversation_id: turn.user for turn in turns}
    records_by_key: dict[Key, Record] = {}
    remaining = iter(users.items())

    async def read() -> None:
        for conversation_id, user in remaining:
            newest = -1
            while newest:  # A response may hold fewer records than requested.
                query = {"conversation_id": conversation_id, "size": _PAGE, "from": newest}
                path = f"{url}/bp/ai/conversation/query"
                try:
                    async with http.get(path, params=query, headers=headers(user)) as answer:
                        records = (await answer.json())["data"]["conversation_records"] if answer.ok else []
                except (ClientError, OSError, TimeoutError):
                    break
                for record in records:
                    key = (conversation_id, record["record_id"])
                    records_by_key[key] = Record.of(record["status"], record["content"])
                newest = records[-1]["record_id"] - 1 if records else 0

    async with ClientSession(trust_env=False) as http, asyncio.TaskGroup() as tasks:
        for _ in range(_AT_ONCE):
            tasks.create_task(read())
    return records_by_key


async def read_leftovers(
    database_url: str, redis_url: str, *, within_s: float, prefix: str = DEFAULT_PREFIX
) -> Leftovers:
    """Poll until nothing is left or `within_s` has passed, and return what is left."""
    loop = asyncio.get_running_loop()
    until = loop.time() + within_s
    while True:
        leftovers = await _read_leftovers_once(database_url, redis_url, prefix)
        if leftovers.is_empty or loop.time() > until:
            return leftovers
        await asyncio.sleep(_RECHECK_S)


async def _read_leftovers_once(database_url: str, redis_url: str, prefix: str) -> Leftovers:
    leftovers = Leftovers()
    conn = await asyncpg.connect(database_url)
    try:
        query = "select conversation_id, record_id from conversation_records where status = 'running'"
        leftovers.running = [(row["conversation_id"], row["record_id"]) for row in await conn.fetch(query)]
    finally:
        await conn.close()
    async with Redis.from_url(redis_url) as client:
        for queue in ("turns", "attempts"):
            leftovers.queued += int(await client.llen(f"{prefix}{{retry_queue}}:{queue}"))  # type: ignore[misc]
        async for key in client.scan_iter(match=f"{prefix}{{{APP}:*}}:turn:*", count=1_000):
            leftovers.turns.append(key.decode())
        async for key in client.scan_iter(match=f"{prefix}{{{APP}:*}}:streams", count=1_000):
            leftovers.slots += [f"{key.decode()} {id_.decode()}" for id_ in await client.zrange(key, 0, -1)]
    return leftovers


def lost_turns(turns: Iterable[AcknowledgedTurn], kept: Mapping[Key, Record]) -> dict[str, list[AcknowledgedTurn]]:
    """Return the acknowledged turns that differ from their record in `kept`, by difference."""
    lost: defaultdict[str, list[AcknowledgedTurn]] = defaultdict(list)
    for turn in turns:
        if problem := _difference(turn, kept.get((turn.conversation_id, turn.record_id))):
            lost[problem].append(turn)
    return dict(lost)


def _difference(turn: AcknowledgedTurn, record: Record | None) -> str:
    if record is None:
        return "no record"
    if record.stream_id not in {"", turn.stream_id}:
        return "the record belongs to another stream"
    if record.status != turn.status:
        return f"status {record.status}, not {turn.status}"
    if record.text_sha256 != turn.text_sha256:
        return "different answer"
    if record.user_text != turn.user_text:
        return "different user text"
    return ""
