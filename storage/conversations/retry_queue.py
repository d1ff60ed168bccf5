"""Queues in Valkey for ends of turns, and attempts, that could not be written while PostgreSQL was unavailable."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, Literal

import structlog

from storage.conversations.attempts import StreamAttempts, add
from storage.conversations.turn_rows import ClosedTurn, close_queued
from storage.postgres.database import Connection, Database
from storage.valkey.client import Valkey, map_errors
from streams.tasks import background, pause, stopping
from streams.wire.codec import dumps, loads
from streams.wire.errors import StoreError

log = structlog.get_logger()

_INTERVAL_S = 5
_Queue = Literal["turns", "attempts"]


async def enqueue(valkey: Valkey, turn: ClosedTurn) -> None:
    """Queue `turn` until it can be written. Raises `StoreError` if Valkey is unavailable too."""
    await _push(valkey, "turns", turn)


async def enqueue_attempts(valkey: Valkey, attempts: StreamAttempts) -> None:
    """Queue the attempts of a stream without a turn. Raises `StoreError` if Valkey is unavailable too."""
    await _push(valkey, "attempts", attempts)


async def write_queued(database: Database, valkey: Valkey) -> int:
    """Write all queued turns, then all queued attempts, oldest first. Returns how many entries were written.

    An entry is removed from its queue only after it was written, so it may be written twice. That has no effect.
    """
    turns = await _write_all(database, valkey, "turns", _write_turn)
    return turns + await _write_all(database, valkey, "attempts", _write_attempts)


async def _push(valkey: Valkey, queue: _Queue, entry: ClosedTurn | StreamAttempts) -> None:
    with map_errors():
        await valkey.client.rpush(_key(valkey, queue), dumps(asdict(entry)))


async def _write_all(
    database: Database,
    valkey: Valkey,
    queue: _Queue,
    write: Callable[[Connection, dict[str, Any]], Awaitable[None]],
) -> int:
    count, key = 0, _key(valkey, queue)
    while True:
        with map_errors():
            raw = await valkey.client.lindex(key, 0)
        if raw is None:
            return count
        async with database.connection() as conn:
            await write(conn, loads(raw))
        with map_errors():
            await valkey.client.lrem(key, 1, raw)  # type: ignore[arg-type]  # The values are bytes.
        count += 1


async def _write_turn(conn: Connection, entry: dict[str, Any]) -> None:
    status = await close_queued(conn, ClosedTurn.of(entry))
    log.info("retry_queue.turn_written", status=status)


async def _write_attempts(conn: Connection, entry: dict[str, Any]) -> None:
    attempts = StreamAttempts(**entry)
    await add(conn, attempts)
    log.info("retry_queue.attempts_written", stream_id=attempts.stream_id, count=len(attempts.rows))


@asynccontextmanager
async def open_retry_queue(database: Database, valkey: Valkey) -> AsyncIterator[None]:
    """Write queued entries periodically during the block."""
    async with background(_keep_writing(database, valkey)):
        yield


async def _keep_writing(database: Database, valkey: Valkey) -> None:
    while not stopping():
        try:
            await write_queued(database, valkey)
        except StoreError as error:
            log.debug("retry_queue.waiting", error=str(error))
        await pause(_INTERVAL_S)


def _key(valkey: Valkey, queue: _Queue) -> str:
    return valkey.key("retry_queue", queue)
