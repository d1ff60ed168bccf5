"""Store turns: the user's message before the answer is sent, and the answer when the turn ends."""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_exponential_jitter

from actors.runtime.context import StreamContext
from storage.configs.kinds.strategies import Price
from storage.conversations import attempts
from storage.conversations.attempts import StreamAttempts
from storage.conversations.conversations import RecordStatus
from storage.conversations.retry_queue import enqueue, enqueue_attempts
from storage.conversations.turn_rows import ClosedTurn, NewTurn, TurnOutcome
from storage.conversations.turns import TurnWriter
from streams.kept_errors import copy_of
from streams.wire.codec import decimal_number
from streams.wire.errors import (
    Conflict,
    DatabaseUnavailable,
    ItemNotFound,
    ServiceError,
    StoreError,
    StoreUnavailable,
)
from vendors.protocols import Usage

log = structlog.get_logger()

_CLOSE_TIMEOUT_S = 5
_ENDS: frozenset[RecordStatus | None] = frozenset(("complete", "interrupted"))
"""The record statuses of streams that end with the event `end`."""


class ConversationDeleted(ItemNotFound):
    """The conversation was deleted during the turn."""


class TurnLost(Conflict):
    """The server was paused, and another process took over the turn. The answer is not stored, or is incomplete."""

    retryable = True


def source(platform: str, model: str = "") -> dict[str, Any]:
    """Return the `source` object of a content item (§2.12)."""
    return {"from_user": platform == "user", "platform": platform, "model": model}


def text_item(text: str, origin: Mapping[str, Any], *, delimiter: str = "") -> dict[str, Any]:
    item: dict[str, Any] = {"type": "text", "text": text, "source": origin}
    return {**item, "delimiter": delimiter} if delimiter else item


def audio_item(key: str, origin: Mapping[str, Any], *, viseme_key: str | None = None) -> dict[str, Any]:
    """Return an audio item that names the stored objects. Clients receive links in place of the keys."""
    item: dict[str, Any] = {"type": "audio_url", "audio_url": {"key": key}, "source": origin}
    return {**item, "viseme_url": {"key": viseme_key}} if viseme_key else item


def open_turn(ctx: StreamContext, conversation_id: str, message: dict[str, Any]) -> asyncio.Future[int]:
    """Store the user's message and return the id of its record. An open turn of a dead process is closed first."""
    owner, resources = ctx.owner, ctx.resources
    return resources.turns.open(
        NewTurn(
            app_id=owner.app_id,
            conversation_id=conversation_id,
            uid=owner.user_id,
            content=[message],
            stream_id=ctx.stream_id,
            max_stream_s=ctx.max_stream_s,
            process=resources.heartbeat.process,
            clock_offset_s=resources.clock.offset_s(owner.app_id),
        )
    )


async def store_attempts(ctx: StreamContext) -> None:
    """Store the vendor calls of a stream without a turn. If the database is unavailable, queue them in Valkey.

    Never raises `StoreError`: attempts that can be neither stored nor queued are lost, which is logged.
    """
    if not ctx.attempts:
        return
    owner, resources = ctx.owner, ctx.resources
    rows = StreamAttempts(
        owner.app_id, owner.user_id, ctx.stream_id, ctx.attempt_rows(), resources.clock.offset_s(owner.app_id)
    )
    try:
        try:
            async with resources.database.connection() as conn:
                await attempts.add(conn, rows)
        except StoreUnavailable:
            await enqueue_attempts(resources.valkey, rows)
            log.warning("attempts.queued", stream_id=ctx.stream_id, count=len(ctx.attempts))
    except StoreError as error:
        log.error("attempts.lost", stream_id=ctx.stream_id, count=len(ctx.attempts), error=str(error))


async def close_turn(ctx: StreamContext, conversation_id: str, record_id: int, answered: TurnOutcome) -> None:
    """Store the end of the turn. If the database stays unavailable, queue it in Valkey to be written later.

    Raises the error that the stream must end with if the record was meanwhile closed by another process; see
    `lost_turn`. Raises `StoreUnavailable` if neither store is available.
    """
    turn = ClosedTurn(
        ctx.owner.app_id,
        ctx.owner.user_id,
        conversation_id,
        record_id,
        ctx.stream_id,
        answered,
        ctx.attempt_rows(),
        ctx.resources.clock.offset_s(ctx.owner.app_id),
        ctx.resources.heartbeat.process,
    )
    try:
        status = await _close(ctx.resources.turns, turn)
    except StoreUnavailable as unavailable:
        await _queue(ctx, turn, why_not_stored=unavailable.what)
        return
    if (lost := lost_turn(answered.status, status)) is not None:
        log.error("turn.lost", stream_id=ctx.stream_id, conversation_id=conversation_id, record_id=record_id)
        raise copy_of(lost)


def lost_turn(requested: RecordStatus, actual: RecordStatus | None) -> ServiceError | None:
    """Return the error that a stream must end with instead of `end`, or `None` if its turn was not lost.

    `requested` is the status to be stored, `actual` is the status of the record, `None` if there is no record. A
    turn is lost if its process was paused and therefore considered dead: another process then sets the record to
    `incomplete`. `close_turns` adds the answer to that record, but another turn may have started without it, so the
    stream must not report success. A stream that already ends with an error keeps its own error.
    """
    if requested not in _ENDS or actual in _ENDS:
        return None
    if actual is None:
        return ConversationDeleted("the conversation was deleted during the turn: the answer was not stored")
    if actual == "running":
        return TurnLost("another process has taken over the stream: the answer was not stored")
    return TurnLost(
        "the turn was taken over while this server was paused: the answer was stored as incomplete"
        if actual == "incomplete"
        else f"the record has the status {actual}: the answer was not stored"
    )


async def _queue(ctx: StreamContext, turn: ClosedTurn, *, why_not_stored: str) -> None:
    try:
        await enqueue(ctx.resources.valkey, turn)
    except StoreUnavailable as error:
        raise DatabaseUnavailable(f"{why_not_stored}, and {error.what}: the answer was not stored") from error
    log.warning("turn.queued", stream_id=ctx.stream_id)


async def _close(turns: TurnWriter, turn: ClosedTurn) -> RecordStatus | None:
    """Close `turn` and return the status of its record. Retries for up to 5 s before raising `StoreUnavailable`."""
    try:
        return await _close_once(turns, turn)
    except StoreUnavailable:
        tries = AsyncRetrying(
            retry=retry_if_exception_type(StoreUnavailable),
            stop=stop_after_delay(_CLOSE_TIMEOUT_S),
            wait=wait_exponential_jitter(multiplier=0.1, max=1),
            reraise=True,
        )
        try:
            status: RecordStatus | None = await tries(_close_once, turns, turn)
        finally:
            tries.iter_state.reset()  # The state refers to `tries` and to the turn: a reference cycle.
        return status


async def _close_once(turns: TurnWriter, turn: ClosedTurn) -> RecordStatus | None:
    if (status := await turns.close(turn)) is not None:
        return status
    # An earlier try may have been committed although its response was lost.
    return await turns.status_of(turn)


def unit_price(price: Price, usage: Usage) -> dict[str, Any]:
    """Return the `unit_price` object (§2.13): the usage and the price of one unit."""
    return {
        "input_per_price": decimal_number(price.input),
        "output_per_price": decimal_number(price.output),
        "input_token": usage.input_token,
        "output_token": usage.output_token,
    }
