"""Reads what is kept of a soak's turns, as its users do and from the stores, once the load is over."""

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
from bench.soak.notes import AcknowledgedTurn
from streams.wire.codec import loads

_AT_ONCE = 8
_PAGE = 100
_ROWS_AT_ONCE = 1_000
_LOOK_AGAIN_S = 1
DEFAULT_PREFIX = "parley:"
"""Of all keys in Valkey, where `PARLEY_REDIS_PREFIX` names no other."""
Key = tuple[str, int]
"""Conversation and record."""


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of a turn. `stream_id` is empty where the history does not tell it."""

    status: str
    user_text: str
    text_sha256: str
    stream_id: str = ""

    @classmethod
    def of(cls, status: str, content: Sequence[Mapping[str, Any]], stream_id: str = "") -> "Record":
        """From the messages of a record as §2.12 has them."""
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
class Remains:
    """What is left of turns that have ended, and should not be there."""

    running: list[Key] = field(default_factory=list)
    """Records that say that their turn is under way."""
    queued: int = 0
    """Turns in Valkey that wait to be written to PostgreSQL."""
    turns: list[str] = field(default_factory=list)
    """Keys in Valkey of turns that are held."""
    slots: list[str] = field(default_factory=list)
    """Streams that count against a user, as `user stream` by their keys in Valkey."""

    @property
    def nothing(self) -> bool:
        return not (self.running or self.queued or self.turns or self.slots)


async def read_rows(database_url: str) -> dict[Key, Record]:
    """All records, from PostgreSQL."""
    found: dict[Key, Record] = {}
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
                found[key] = Record.of(row["status"], content, row["stream_id"])
    finally:
        await conn.close()
    return found


async def read_history(
    url: str, turns: Iterable[AcknowledgedTurn], *, headers: Callable[[int], dict[str, str]]
) -> dict[Key, Record]:
    """The records of all conversations in `turns`, as their users read them (`headers`: of a user).

    What cannot be read is left out.
    """
    users = {turn.conversation_id: turn.user for turn in turns}
    found: dict[Key, Record] = {}
    left = iter(users.items())

    async def read() -> None:
        for conversation_id, user in left:
            newest = -1
            while newest:  # an answer may hold fewer records than it was asked for
                query = {"conversation_id": conversation_id, "size": _PAGE, "from": newest}
                path = f"{url}/bp/ai/conversation/query"
                try:
                    async with http.get(path, params=query, headers=headers(user)) as answer:
                        records = (await answer.json())["data"]["conversation_records"] if answer.ok else []
                except (ClientError, OSError, TimeoutError):
                    break
                for record in records:
                    key = (conversation_id, record["record_id"])
                    found[key] = Record.of(record["status"], record["content"])
                newest = records[-1]["record_id"] - 1 if records else 0

    async with ClientSession(trust_env=False) as http, asyncio.TaskGroup() as tasks:
        for _ in range(_AT_ONCE):
            tasks.create_task(read())
    return found


async def read_remains(
    database_url: str, redis_url: str, *, within_s: float, prefix: str = DEFAULT_PREFIX
) -> Remains:
    """What is left, as soon as that is nothing or the time is over."""
    loop = asyncio.get_running_loop()
    until = loop.time() + within_s
    while True:
        remains = await _remains(database_url, redis_url, prefix)
        if remains.nothing or loop.time() > until:
            return remains
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _remains(database_url: str, redis_url: str, prefix: str) -> Remains:
    found = Remains()
    conn = await asyncpg.connect(database_url)
    try:
        query = "select conversation_id, record_id from conversation_records where status = 'running'"
        found.running = [(row["conversation_id"], row["record_id"]) for row in await conn.fetch(query)]
    finally:
        await conn.close()
    async with Redis.from_url(redis_url) as client:
        found.queued = int(await client.llen(f"{prefix}{{retry_queue}}:turns"))  # type: ignore[misc]
        async for key in client.scan_iter(match=f"{prefix}{{{APP}:*}}:turn:*", count=1_000):
            found.turns.append(key.decode())
        async for key in client.scan_iter(match=f"{prefix}{{{APP}:*}}:streams", count=1_000):
            found.slots += [f"{key.decode()} {id_.decode()}" for id_ in await client.zrange(key, 0, -1)]
    return found


def lost_turns(turns: Iterable[AcknowledgedTurn], kept: Mapping[Key, Record]) -> dict[str, list[AcknowledgedTurn]]:
    """Acknowledged turns that `kept` does not hold exactly as they were received, by what is wrong."""
    found: defaultdict[str, list[AcknowledgedTurn]] = defaultdict(list)
    for turn in turns:
        if wrong := _wrong(turn, kept.get((turn.conversation_id, turn.record_id))):
            found[wrong].append(turn)
    return dict(found)


def _wrong(turn: AcknowledgedTurn, record: Record | None) -> str:
    if record is None:
        return "no record"
    if record.stream_id not in {"", turn.stream_id}:
        return "the record is of another stream"
    if record.status != turn.status:
        return f"status {record.status}, not {turn.status}"
    if record.text_sha256 != turn.text_sha256:
        return "another answer"
    if record.user_text != turn.user_text:
        return "another user text"
    return ""
