"""Ends of turns that PostgreSQL did not take: kept in Valkey, and written when it is back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict

import structlog

from storage.conversations import ClosedTurn, close_queued
from storage.postgres import Database
from storage.redis import Valkey, map_errors
from streams.tasks import background, stopping
from streams.wire.codec import dumps, loads
from streams.wire.errors import StoreError

log = structlog.get_logger()

_LOOK_EVERY_S = 5


async def enqueue(valkey: Valkey, turn: ClosedTurn) -> None:
    """Keep `turn` until it can be written; `StoreError` where Valkey is away too."""
    with map_errors():
        await valkey.client.rpush(_key(valkey), dumps(asdict(turn)))


async def write_queued(database: Database, valkey: Valkey) -> int:
    """Write what is parked, oldest first. A turn stays parked until it is written, so it may be written twice."""
    count = 0
    while True:
        with map_errors():
            raw = await valkey.client.lindex(_key(valkey), 0)
        if raw is None:
            return count
        async with database.connection() as conn:
            written = await close_queued(conn, ClosedTurn.of(loads(raw)))
        with map_errors():
            await valkey.client.lrem(_key(valkey), 1, raw)  # type: ignore[arg-type]  # bytes are what it stores
        log.info("turn.written_later", written=written)
        count += 1


@asynccontextmanager
async def open_retry_queue(database: Database, valkey: Valkey) -> AsyncIterator[None]:
    """Look for what is parked again and again as long as the block lasts."""
    async with background(_keep_writing(database, valkey)):
        yield


async def _keep_writing(database: Database, valkey: Valkey) -> None:
    while not stopping():
        try:
            await write_queued(database, valkey)
        except StoreError as error:
            log.debug("retry_queue.waiting", error=str(error))
        if not stopping():
            await asyncio.sleep(_LOOK_EVERY_S)


def _key(valkey: Valkey) -> str:
    return valkey.key("retry_queue", "turns")
