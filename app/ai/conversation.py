"""Converse: parameters first, then text or audio as it comes (§4.17)."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from actors.conversation import TurnPlan
from actors.conversation import converse as play_turn
from actors.strategies import Broken, Strategy
from app.ai.opening import StreamSpec, asked_under_key, open_actor
from app.ai.streams import serve, serve_again
from app.ai.upload import discard, pump_audio, pump_text, read_parameters
from app.http.endpoint import Call, DeferredResponse, check_user
from storage import conversations
from storage.admission import StreamLocation
from streams.wire.errors import ConfigInvalid, ItemNotFound
from streams.wire.ids import is_id, new_id
from streams.wire.model import Model


class ConverseParams(Model):
    """The first JSON object of the body."""

    strategies: list[str] = Field(min_length=1, max_length=16)
    """Names of conversation strategies, tried in order."""
    conversation_id: str | None = Field(default=None, max_length=64)
    """Empty or absent: a new conversation."""
    language_code: str = Field(min_length=1, max_length=35)
    """Language of the user's input."""
    target_language_code: str = Field(min_length=1, max_length=35)
    """Language of the answer."""
    type: Literal["text", "audio"]
    voice: str | None = Field(default=None, max_length=256)
    stt_prompt: str | None = Field(default=None, max_length=4096)
    params: dict[str, Any] | None = None
    """Values for the system prompt's template."""


async def converse(call: Call) -> web.StreamResponse | DeferredResponse:
    """Converse, by text or voice.

    The body is a JSON object of parameters, then the input: UTF-8 text, or audio as one base64 text (cut it at
    multiples of 3 bytes). The answer is an event stream. Asked again under the same `Idempotency-Key`, it is the
    same stream, answered once; the input is not read then.
    """
    value, reader = await read_parameters(call)
    params = ConverseParams.of(value)
    await check_user(call)
    running = await _turn_runs(call, params.conversation_id)
    plan = _plan(call, params)
    spec = StreamSpec(
        "conversation",
        partial(play_turn, plan=plan),
        conversation_id=plan.conversation_id,
        asked=asked_under_key(call, params),
        seen_running=running,
    )
    opened = await open_actor(call, spec)
    if isinstance(opened, StreamLocation):
        return await serve_again(call, opened, pump=discard(reader))
    pump = pump_audio if plan.spoken else pump_text
    return serve(call, opened, pump=pump(reader, opened, call.app_limits))


async def _turn_runs(call: Call, given: str | None) -> bool:
    """Whether the conversation, if one is given, has a turn under way; `ItemNotFound` if it is not the caller's."""
    if not given:
        return False
    running = None
    if is_id(given):
        async with call.services.database.connection() as conn:
            running = await conversations.is_running(conn, call.app_id, call.caller.user, given)
    if running is None:
        raise ItemNotFound("conversation_id names no conversation of this user")
    return running


def _plan(call: Call, params: ConverseParams) -> TurnPlan:
    given = params.conversation_id
    strategies = call.services.strategies.conversations(call.app_id, params.strategies)
    if params.type == "audio":
        _check_some_hears(strategies)
    return TurnPlan(
        conversation_id=given or new_id(),
        new=not given,
        spoken=params.type == "audio",
        strategies=strategies,
        language_code=params.language_code,
        target_language_code=params.target_language_code,
        voice=params.voice,
        stt_prompt=params.stt_prompt,
        params=params.params or {},
    )


def _check_some_hears(strategies: Sequence[Strategy | Broken]) -> None:
    """To a spoken turn a strategy without recognition is broken; where all are, it is refused before its stream."""
    sound = [strategy for strategy in strategies if isinstance(strategy, Strategy)]
    if sound and all(strategy.config.recognition is None for strategy in sound):
        raise ConfigInvalid(f"conversation {sound[0].name}: recognition is not set")
