"""A queue in Valkey for ends of turns that could not be written because PostgreSQL was unavailable."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict

import structlog

from storage.postgres import Database
from storage.redis import Valkey, map_errors
from storage.turn_rows import ClosedTurn, close_queued
from streams.tasks import background, stopping
from streams.wire.codec import dumps, loads
from streams.wire.errors import StoreError

log = structlog.get_logger()

_INTERVAL_S = 5


async def enqueue(valkey: Valkey, turn: ClosedTurn) -> None:
    """Queue `turn` until it can be written. Raises `StoreError` if Valkey is unavailable too."""
    with map_errors():
        await valkey.client.rpush(_key(valkey), dumps(asdict(turn)))


async def write_queued(database: Database, valkey: Valkey) -> int:
    """Write the queued turns, oldest first, and return how many were written.

    A turn is removed from the queue only after it was written, so it may be written twice. That has no effect.
    """
    count = 0
    while True:
        with map_errors():
            raw = await valkey.client.lindex(_key(valkey), 0)
        if raw is None:
            return count
        async with database.connection() as conn:
            status = await close_queued(conn, ClosedTurn.of(loads(raw)))
        with map_errors():
            await valkey.client.lrem(_key(valkey), 1, raw)  # type: ignore[arg-type]  # The values are bytes.
        log.info("retry_queue.turn_written", status=status)
        count += 1


@asynccontextmanager
async def open_retry_queue(database: Database, valkey: Valkey) -> AsyncIterator[None]:
    """Write queued turns periodically during the block."""
    async with background(_keep_writing(database, valkey)):
        yield


async def _keep_writing(database: Database, valkey: Valkey) -> None:
    while not stopping():
        try:
            await write_queued(database, valkey)
        except StoreError as error:
            log.debug("retry_queue.waiting", error=str(error))
        if not stopping():
            await asyncio.sleep(_INTERVAL_S)


def _key(valkey: Valkey) -> str:
    return valkey.key("retry_queue", "turns")
