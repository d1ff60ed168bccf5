"""Reading the input of a chunked request as it arrives: text or audio (§4.17, 4.18)."""

import math
from contextlib import suppress
from types import TracebackType

import aiohttp
from aiohttp import web
from prometheus_client import Counter

from actors.runtime.actor import Actor
from actors.runtime.mailbox import Cancel
from app.http.request.held_bodies import HELD_BODIES
from app.http.rows.endpoint import Call
from streams.audio.pcm import PcmDecoder
from streams.audio.turn_end import SAMPLE_RATE, TurnEnd
from streams.body import ChunkReader
from streams.decoders import Base64Decoder, Utf8Decoder
from streams.wire.errors import ServiceError, TooLarge

UNALIGNED = Counter(
    "parley_audio_unaligned_chunks", "HTTP chunks of audio that end inside a base64 group without padding"
)
"""Counted approximately: of chunks under 64 bytes that are read together, only the first and last are checked."""


_UNCOUNTED_BYTES = 1024 * 1024
"""Half a minute of PCM, so that the limits of large bodies do not limit the number of ordinary streams."""
_IGNORED_BYTES = 16 * 1024 * 1024
"""How much is read after the detected end of a turn: minutes of speech, but no more of a flood."""
_DEMAND = "turn_detection requires"


async def pump_text(call: Call, reader: ChunkReader, actor: Actor) -> None:
    """Feed UTF-8 text to the actor."""
    limits = call.app_limits
    with _feeding(actor):
        decoder, buffer, size = Utf8Decoder(), actor.ctx.input, 0
        while (part := await reader.next_part()) is not None:
            piece, _ = part
            decoder.feed(piece)
            buffer.write(piece)
            size += len(piece)
            if size > limits.text_bytes:
                raise TooLarge(f"text exceeds {limits.text_bytes} bytes")
        decoder.finish()


async def pump_audio(call: Call, reader: ChunkReader, actor: Actor, pcm: PcmDecoder | None = None) -> None:
    """Decode base64 audio and feed it to the actor. With `pcm`, feed only its samples.

    Audio of several minutes counts as a large body.
    """
    limits, held = call.app_limits, call.request.app[HELD_BODIES]
    with _feeding(actor):
        decoder, buffer, size = Base64Decoder(), actor.ctx.input, 0

        def write(audio: bytes) -> None:
            nonlocal size
            size += len(audio)
            if size > limits.audio_bytes:
                raise TooLarge(f"audio exceeds {limits.audio_bytes} bytes")
            held.grow(call.request, size - _UNCOUNTED_BYTES)
            buffer.write(pcm.feed(audio) if pcm else audio)

        while (part := await reader.next_part()) is not None:
            piece, chunk_ends = part
            write(decoder.feed(piece))
            if chunk_ends and decoder.unaligned:
                UNALIGNED.inc()
        write(decoder.finish())
        if pcm:
            buffer.write(pcm.finish())


async def pump_turn(call: Call, reader: ChunkReader, actor: Actor, turn_end: TurnEnd) -> None:
    """Feed the samples of base64 audio to the actor until the user has finished speaking, and discard the rest."""
    with _feeding(actor):
        decoder, pcm, buffer = Base64Decoder(), PcmDecoder(SAMPLE_RATE, demand=_DEMAND), actor.ctx.input
        limit = call.app_limits.audio_bytes
        async with call.services.voice_activity.listening(turn_end) as listener:

            async def hear(samples: bytes) -> None:
                if heard := await listener.feed(samples):
                    buffer.write(heard)
                if len(buffer) > limit:
                    raise TooLarge(f"audio exceeds {limit} bytes")
                call.request.app[HELD_BODIES].grow(call.request, len(buffer) - _UNCOUNTED_BYTES)

            while not listener.ended and (part := await reader.next_part()) is not None:
                await hear(pcm.feed(decoder.feed(part[0])))
            if not listener.ended:
                await hear(pcm.feed(decoder.finish()) + pcm.rest())
            if not listener.ended:
                buffer.write(listener.rest())
    await discard(reader, at_most=_IGNORED_BYTES)


async def discard(reader: ChunkReader, *, at_most: float = math.inf) -> None:
    """Read and discard input that is not used. After `at_most` bytes, the client must wait."""
    size = 0
    with suppress(ServiceError, ConnectionError, aiohttp.ClientPayloadError, web.RequestPayloadError):
        while size < at_most and (part := await reader.next_part()) is not None:
            size += len(part[0])


class _feeding:  # noqa: N801 - used like a function
    """Context manager that ends the actor's input. An error in the input fails the stream, not the request."""

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
                self._actor.send(Cancel(aborted=True))
            case _:
                return False
        return True
