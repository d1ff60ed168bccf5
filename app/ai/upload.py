"""The chunked request of the streams: parameters first, then text or audio as it comes (§4.17, 4.18)."""

import time
from contextlib import suppress
from types import TracebackType
from typing import Any

import aiohttp
from aiohttp import web
from prometheus_client import Counter

from actors.actor import Actor
from actors.mailbox import Cancel
from app.http.endpoint import REQUEST_CONTEXT, Call, check_encoding, check_sign
from storage.kinds.limits import Limits
from streams.body import ChunkReader, InputLimits
from streams.decoders import Base64Decoder, Utf8Decoder
from streams.pcm import PcmDecoder
from streams.wire.codec import loads_request
from streams.wire.errors import ServiceError, TooLarge

UNALIGNED = Counter(
    "parley_audio_unaligned_chunks", "HTTP chunks of audio that end inside a base64 group, without padding"
)
"""Of chunks under 64 bytes that are read together, only the first and the last are checked."""


async def read_parameters(call: Call) -> tuple[Any, ChunkReader]:
    """The first JSON object of the body, its signature checked, and what reads the input behind it."""
    check_encoding(call.request)
    limits, content = call.app_limits, call.request.content
    reader = ChunkReader(
        content.readchunk,
        InputLimits(
            parameters_bytes=limits.parameters_bytes,
            parameters_s=limits.parameters_s,
            idle_s=limits.input_idle_s,
            total_s=limits.input_total_s,
        ),
        buffered=content.read_nowait,
        received=lambda: content.total_bytes,
        arrived=content.is_eof,
    )
    began = time.monotonic()
    raw = await reader.first_json()
    call.request[REQUEST_CONTEXT].waited_s = time.monotonic() - began
    value = loads_request(raw)
    await check_sign(call, raw)
    return value, reader


async def pump_text(reader: ChunkReader, actor: Actor, limits: Limits) -> None:
    """Feed the actor with UTF-8 text."""
    with _feeding(actor):
        decoder, tape, size = Utf8Decoder(), actor.ctx.input, 0
        while (part := await reader.next_part()) is not None:
            piece, _ = part
            decoder.feed(piece)
            tape.write(piece)
            size += len(piece)
            if size > limits.text_bytes:
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

        while (part := await reader.next_part()) is not None:
            piece, chunk_ends = part
            take(decoder.feed(piece))
            if chunk_ends and decoder.unaligned:
                UNALIGNED.inc()
        take(decoder.finish())
        if pcm:
            tape.write(pcm.finish())


async def discard(reader: ChunkReader) -> None:
    """Read an input that was given before, and throw it away."""
    with suppress(ServiceError, ConnectionError, aiohttp.ClientPayloadError, web.RequestPayloadError):
        while await reader.next_part() is not None:
            pass


class _feeding:  # noqa: N801 - used as a function is
    """End the actor's input with the block. What is wrong with it ends the stream, not the request."""

    __slots__ = ("_actor",)

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        match error:
            case None:
                self._actor.ctx.input.end()
            case ServiceError():
                self._actor.ctx.input.fail(error)
            case ConnectionError() | aiohttp.ClientPayloadError() | web.RequestPayloadError():
                self._actor.tell(Cancel(aborted=True))
            case _:
                return False
        return True
