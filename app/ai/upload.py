"""The chunked request of the streams: parameters first, then text or audio as it comes (§4.17, 4.18)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import aiohttp
from aiohttp import web
from prometheus_client import Counter

from actors.actor import Actor
from actors.mailbox import Cancel
from app.endpoint import Call, check_encoding, check_sign
from app.state import WAITED
from storage.kinds.limits import Limits
from streams.body import ChunkReader, InputLimits
from streams.decoders import Base64Decoder, Utf8Decoder
from streams.pcm import PcmDecoder
from streams.wire.codec import loads_request
from streams.wire.errors import ServiceError, TooLarge

UNALIGNED = Counter(
    "parley_audio_unaligned_chunks", "HTTP chunks of audio that end inside a base64 group, without padding"
)


async def read_parameters(call: Call) -> tuple[Any, ChunkReader]:
    """The first JSON object of the body, its signature checked, and what reads the input behind it."""
    check_encoding(call.request)
    limits = call.app_limits
    reader = ChunkReader(
        call.request.content.iter_chunks(),
        InputLimits(
            parameters_bytes=limits.parameters_bytes,
            parameters_s=limits.parameters_s,
            idle_s=limits.input_idle_s,
            total_s=limits.input_total_s,
        ),
        arrived=call.request.content.is_eof,
    )
    began = time.monotonic()
    raw = await reader.first_json()
    call.request[WAITED] = time.monotonic() - began
    value = loads_request(raw)
    await check_sign(call, raw)
    return value, reader


async def pump_text(reader: ChunkReader, actor: Actor, limits: Limits) -> None:
    """Feed the actor with UTF-8 text."""
    with _feeding(actor):
        decoder, tape = Utf8Decoder(), actor.ctx.input
        async for piece, _ in reader.rest():
            decoder.feed(piece)
            tape.write(piece)
            if len(tape) > limits.text_bytes:
                raise TooLarge(f"text exceeds {limits.text_bytes} bytes")
        decoder.finish()


async def pump_audio(reader: ChunkReader, actor: Actor, limits: Limits, pcm: PcmDecoder | None = None) -> None:
    """Feed the actor with audio that comes as base64; with `pcm` its samples alone."""
    with _feeding(actor):
        decoder, tape, size = Base64Decoder(), actor.ctx.input, 0

        def take(audio: bytes) -> None:
            nonlocal size
            size += len(audio)
            if size > limits.audio_bytes:
                raise TooLarge(f"audio exceeds {limits.audio_bytes} bytes")
            tape.write(pcm.feed(audio) if pcm else audio)

        async for piece, chunk_ends in reader.rest():
            take(decoder.feed(piece))
            if chunk_ends and decoder.unaligned:
                UNALIGNED.inc()
        take(decoder.finish())
        if pcm:
            tape.write(pcm.finish())


async def discard(reader: ChunkReader) -> None:
    """Read an input that was given before, and throw it away."""
    with suppress(ServiceError, ConnectionError, aiohttp.ClientPayloadError, web.RequestPayloadError):
        async for _ in reader.rest():
            pass


@contextmanager
def _feeding(actor: Actor) -> Iterator[None]:
    """End the actor's input with the block. What is wrong with it ends the stream, not the request."""
    tape = actor.ctx.input
    try:
        yield
        tape.end()
    except ServiceError as error:
        tape.fail(error)
    except (ConnectionError, aiohttp.ClientPayloadError, web.RequestPayloadError):
        actor.tell(Cancel(aborted=True))
