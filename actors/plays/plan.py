"""What a turn of a conversation works with: the validated request, and the history of the conversation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from actors.clients.strategies import Broken, Strategy
from actors.runtime.context import StreamContext
from storage.conversations import conversations
from storage.conversations.conversations import Record
from streams.audio.turn_end import TurnEnd

_HISTORY_RECORDS = 200
_HISTORY_BYTES = 1024 * 1024
_HISTORY_BYTES_PER_TOKEN = 64
"""Bytes of stored JSON: about 4 of text, and the JSON around each paragraph."""


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """A validated request: its strategies are resolved, and the conversation belongs to the caller."""

    conversation_id: str
    new: bool
    spoken: bool
    strategies: Sequence[Strategy | Broken]
    language_code: str
    target_language_code: str
    voice: str | None
    stt_prompt: str | None
    params: Mapping[str, Any]
    turn_end: TurnEnd | None = None
    """Finds the end of the user's speech, if the client leaves that to the server."""


async def read_history(ctx: StreamContext, plan: TurnPlan, *, before: int = 2**31) -> list[Record]:
    """Return the newest records of the conversation whose ids are below `before`."""
    strategies = [strategy for strategy in plan.strategies if isinstance(strategy, Strategy)]
    context_tokens = max((strategy.config.chat.context_tokens for strategy in strategies), default=0)
    async with ctx.resources.database.connection() as conn:
        return await conversations.page(
            conn,
            ctx.owner.app_id,
            conversation_id=plan.conversation_id,
            newest=before - 1,
            size=_HISTORY_RECORDS,
            max_bytes=max(_HISTORY_BYTES, _HISTORY_BYTES_PER_TOKEN * context_tokens),
        )
