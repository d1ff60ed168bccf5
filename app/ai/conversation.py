"""Converse: parameters first, then text or audio as it comes (§4.17)."""

import time
from functools import partial
from typing import Any, Literal

import aiohttp
from aiohttp import web
from prometheus_client import Counter
from pydantic import Field

from actors.actor import Actor
from actors.conversation import TurnPlan
from actors.conversation import converse as play_turn
from actors.mailbox import Cancel
from app.ai.streams import open_actor, serve
from app.endpoint import Call, check_encoding, check_sign, check_user
from app.state import WAITED
from storage import conversations
from storage.kinds.limits import Limits
from streams.body import ChunkReader, InputLimits
from streams.decoders import Base64Decoder, Utf8Decoder
from streams.wire.codec import loads_request
from streams.wire.errors import ItemNotFound, ServiceError, TooLarge
from streams.wire.ids import is_id, new_id
from streams.wire.model import Model

UNALIGNED = Counter(
    "parley_audio_unaligned_chunks", "HTTP chunks of audio that end inside a base64 group, without padding"
)


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


async def converse(call: Call) -> web.StreamResponse:
    """Converse, by text or voice.

    The body is a JSON object of parameters, then the input: UTF-8 text, or audio as one base64 text (cut it at
    multiples of 3 bytes). The answer is an event stream.
    """
    check_encoding(call.request)
    reader = _reader(call)
    began = time.monotonic()
    raw = await reader.first_json()
    call.request[WAITED] = time.monotonic() - began
    value = loads_request(raw)
    await check_sign(call, raw)
    params = ConverseParams.of(value)
    await check_user(call)
    plan = await _plan(call, params)
    actor = await open_actor(
        call, partial(play_turn, plan=plan), kind="conversation", conversation_id=plan.conversation_id
    )
    return await serve(
        call,
        actor,
        headers={"X-Service-Conversation-Id": plan.conversation_id},
        pump=_pump(reader, actor, call.app_limits, spoken=plan.spoken),
    )


def _reader(call: Call) -> ChunkReader:
    limits = call.app_limits
    return ChunkReader(
        call.request.content.iter_chunks(),
        InputLimits(
            parameters_bytes=limits.parameters_bytes,
            parameters_s=limits.parameters_s,
            idle_s=limits.input_idle_s,
            total_s=limits.input_total_s,
        ),
    )


async def _plan(call: Call, params: ConverseParams) -> TurnPlan:
    if given := params.conversation_id:
        async with call.services.database.connection() as conn:
            known = is_id(given) and await conversations.exists(conn, call.app_id, call.caller.user, given)
        if not known:
            raise ItemNotFound("conversation_id names no conversation of this user")
    return TurnPlan(
        conversation_id=given or new_id(),
        new=not given,
        spoken=params.type == "audio",
        strategies=call.services.strategies.conversations(call.app_id, params.strategies),
        language_code=params.language_code,
        target_language_code=params.target_language_code,
        voice=params.voice,
        stt_prompt=params.stt_prompt,
        params=params.params or {},
    )


async def _pump(reader: ChunkReader, actor: Actor, limits: Limits, *, spoken: bool) -> None:
    """Feed the actor with what follows the parameters. What is wrong with it ends the stream, not the request."""
    tape = actor.ctx.input
    try:
        if spoken:
            await _pump_audio(reader, actor, limits)
        else:
            await _pump_text(reader, actor, limits)
        tape.end()
    except ServiceError as error:
        tape.fail(error)
    except (ConnectionError, aiohttp.ClientPayloadError, web.RequestPayloadError):
        actor.tell(Cancel(aborted=True))


async def _pump_text(reader: ChunkReader, actor: Actor, limits: Limits) -> None:
    decoder, tape = Utf8Decoder(), actor.ctx.input
    async for piece, _ in reader.rest():
        decoder.feed(piece)
        tape.write(piece)
        if len(tape) > limits.text_bytes:
            raise TooLarge(f"text exceeds {limits.text_bytes} bytes")
    decoder.finish()


async def _pump_audio(reader: ChunkReader, actor: Actor, limits: Limits) -> None:
    decoder, tape = Base64Decoder(), actor.ctx.input
    async for piece, chunk_ends in reader.rest():
        tape.write(decoder.feed(piece))
        if chunk_ends and decoder.unaligned:
            UNALIGNED.inc()
        if len(tape) > limits.audio_bytes:
            raise TooLarge(f"audio exceeds {limits.audio_bytes} bytes")
    tape.write(decoder.finish())
