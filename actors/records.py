"""How turns are kept: the user's words before the answer, the answer when it ends."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_exponential_jitter

from actors.context import StreamContext
from storage import attempts
from storage.attempts import AttemptRow
from storage.conversations import Answered, ClosedTurn, NewTurn, RecordStatus
from storage.kinds.strategies import Price
from storage.retry_queue import enqueue
from storage.turns import TurnWriter
from streams.wire.codec import dumps
from streams.wire.errors import InvalidOperation, ItemNotFound, ServiceError, StoreAway, StoreError
from vendors.fallback import AttemptRecord
from vendors.protocols import Usage

log = structlog.get_logger()

_CLOSE_WITHIN_S = 5
_ENDS: frozenset[RecordStatus | None] = frozenset(("complete", "interrupted"))
"""The statuses whose streams end with `end`."""


def source(platform: str, model: str = "") -> dict[str, Any]:
    """Who a piece of content is from (§2.12)."""
    return {"from_user": platform == "user", "platform": platform, "model": model}


def text_item(text: str, origin: Mapping[str, Any], *, delimiter: str = "") -> dict[str, Any]:
    item: dict[str, Any] = {"type": "text", "text": text, "source": origin}
    return {**item, "delimiter": delimiter} if delimiter else item


def audio_item(key: str, origin: Mapping[str, Any], *, viseme_key: str | None = None) -> dict[str, Any]:
    """Names the stored object; a reader gets a link to it."""
    item: dict[str, Any] = {"type": "audio_url", "audio_url": {"key": key}, "source": origin}
    return {**item, "viseme_url": {"key": viseme_key}} if viseme_key else item


def open_turn(ctx: StreamContext, conversation_id: str, message: dict[str, Any]) -> asyncio.Future[int]:
    """Store the user's message; the id of its record. A turn that a dead process left is over."""
    owner, resources = ctx.owner, ctx.resources
    return resources.turns.open(
        NewTurn(
            app_id=owner.app_id,
            conversation_id=conversation_id,
            uid=owner.user_id,
            content=dumps([message]).decode(),
            stream_id=ctx.stream_id,
            longest_s=ctx.longest_s,
            process=resources.heartbeat.process,
        )
    )


async def keep_attempts(ctx: StreamContext) -> None:
    """Store what vendors were asked, where no turn does. That the database is away only costs the rows."""
    if not ctx.attempts:
        return
    try:
        async with ctx.resources.database.connection() as conn:
            await attempts.add(conn, ctx.owner.app_id, ctx.owner.user_id, ctx.stream_id, _rows(ctx.attempts))
    except StoreError as error:
        log.error("attempts.lost", stream_id=ctx.stream_id, count=len(ctx.attempts), error=str(error))


def _rows(records: Sequence[AttemptRecord]) -> list[AttemptRow]:
    return [
        {
            "number": number,
            "stage": record.stage,
            "strategy": record.strategy,
            "vendor": record.vendor,
            "outcome": record.outcome,
            "message": str(record.error or ""),
            "first_output_ms": record.first_output_ms,
            "elapsed_ms": record.elapsed_ms,
            "input_unit": (usage := record.usage).input_token,
            "output_unit": usage.output_token,
            "price": str(record.cost),
            "usage_source": record.meter.source,
        }
        for number, record in enumerate(records, 1)
    ]


async def close_turn(ctx: StreamContext, conversation_id: str, record_id: int, answered: Answered) -> None:
    """Store how the turn ended: retried while the database is away, then parked and written later.

    Raises the error that the stream must end with if its record does not hold the end that was asked for; see
    `lost_turn`. `StoreAway` if neither store takes it.
    """
    turn = ClosedTurn(
        ctx.owner.app_id,
        ctx.owner.user_id,
        conversation_id,
        record_id,
        ctx.stream_id,
        answered,
        _rows(ctx.attempts),
    )
    try:
        found = await _closed(ctx.resources.turns, turn)
    except StoreAway:
        await _park(ctx, turn)
        return
    if (error := lost_turn(answered.status, found)) is not None:
        log.error("turn.lost", stream_id=ctx.stream_id, conversation_id=conversation_id, record_id=record_id)
        raise error


def lost_turn(asked: RecordStatus, found: RecordStatus | None) -> ServiceError | None:
    """The error a stream ends with instead of `end`, by the status it asked for and the one its record has.

    A turn is lost when its process was called dead while it was only paused: somebody else has made the record
    `incomplete`. `close_turns` adds what was said to that record, but another turn may have begun without it, so
    the stream must not claim to have ended well. A stream that ends with an error of its own keeps that one.
    """
    if asked not in _ENDS or found in _ENDS:
        return None
    if found is None:
        return ItemNotFound("the conversation was deleted during the turn: what was said is not kept")
    return InvalidOperation(
        "the turn was taken over while this server was paused: what was said is kept in the record as incomplete"
        if found == "incomplete"
        else f"the record has the status {found}: what was said is not kept",
        extra={"retryable": True},
    )


async def _park(ctx: StreamContext, turn: ClosedTurn) -> None:
    try:
        await enqueue(ctx.resources.valkey, turn)
    except StoreAway as error:
        raise StoreAway(
            "neither the database nor the cache is reachable: what was said is not kept",
            error_type="database",
            retry_after_s=1,
        ) from error
    log.warning("turn.queued", stream_id=ctx.stream_id)


async def _closed(turns: TurnWriter, turn: ClosedTurn) -> RecordStatus | None:
    """Close `turn`; the status of its record. Tried again for a while before `StoreAway`."""
    try:
        return await _close_once(turns, turn)
    except StoreAway:
        tries = AsyncRetrying(
            retry=retry_if_exception_type(StoreAway),
            stop=stop_after_delay(_CLOSE_WITHIN_S),
            wait=wait_exponential_jitter(multiplier=0.1, max=1),
            reraise=True,
        )
        status: RecordStatus | None = await tries(_close_once, turns, turn)
        return status


async def _close_once(turns: TurnWriter, turn: ClosedTurn) -> RecordStatus | None:
    if (written := await turns.close(turn)) is not None:
        return written
    return await turns.status_of(turn)  # an earlier try may have been written although its answer was lost


def unit_price(price: Price, usage: Usage) -> dict[str, Any]:
    """What was used and what one of it costs (§2.13)."""
    return {
        "input_per_price": price.input,
        "output_per_price": price.output,
        "input_token": usage.input_token,
        "output_token": usage.output_token,
    }
