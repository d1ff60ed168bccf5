"""Turns of conversations, and what the database has of them."""

import asyncio
from collections.abc import Sequence
from typing import Any

from app.services import Services
from storage.conversations.attempts import AttemptRow
from storage.conversations.conversations import find
from storage.conversations.turn_rows import ClosedTurn, NewTurn, TurnOutcome
from storage.conversations.turns import TurnWriter
from streams.wire.ids import new_id

MANY = 60
ATTEMPT = AttemptRow(
    number=1,
    stage="llm",
    strategy="one",
    vendor="openai",
    outcome="won",
    message="",
    first_output_ms=7,
    elapsed_ms=9,
    input_unit=3,
    output_unit=4,
    price="0.25",
    usage_source="vendor",
)


def new_turn(
    conversation_id: str = "",
    *,
    uid: str = "u",
    words: str = "Hello?",
    process: str = "",
    max_stream_s: float = 600,
) -> NewTurn:
    return NewTurn(
        app_id="default",
        conversation_id=conversation_id or new_id(),
        uid=uid,
        content=[{"role": "user", "content": [{"type": "text", "text": words}]}],
        stream_id=new_id(),
        max_stream_s=max_stream_s,
        process=process,
    )


def end_of(turn: NewTurn, record_id: int = 1, *, words: str = "Fine.") -> ClosedTurn:
    message = {"role": "assistant", "content": [{"type": "text", "text": words}]}
    answered = TurnOutcome("complete", "one", message, 3, 4, tokens_estimated=False)
    return ClosedTurn("default", turn.uid, turn.conversation_id, record_id, turn.stream_id, answered, [ATTEMPT])


async def opened(turns: TurnWriter, requested: Sequence[NewTurn]) -> list[Any]:
    return await asyncio.gather(*[turns.open(turn) for turn in requested], return_exceptions=True)


async def closed(turns: TurnWriter, requested: Sequence[ClosedTurn]) -> list[Any]:
    return await asyncio.gather(*[turns.close(turn) for turn in requested], return_exceptions=True)


async def value(services: Services, statement: str, *args: Any) -> Any:
    async with services.database.connection() as conn:
        return await conn.fetchval(statement, *args)


async def reported(services: Services, turn: NewTurn) -> tuple[int, int, int, list[str]]:
    """Return the counters of a conversation, and the statuses of its records."""
    async with services.database.connection() as conn:
        found = await find(conn, turn.app_id, turn.uid, conversation_id=turn.conversation_id)
        assert found is not None
        rows = await conn.fetch(
            "select status from conversation_records where conversation_id = $1 order by record_id",
            turn.conversation_id,
        )
    return found.last_record_id, found.record_count, found.record_token, [status for (status,) in rows]
