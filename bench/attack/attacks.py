"""The table of attacks: what each one sends, and the targets that the server must meet."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.attack import floods, heads, readers, uploads
from bench.attack.attacker import Attacker
from bench.attack.judge import READER_KIB, Targets

Run = Callable[[Attacker], Coroutine[Any, Any, None]]
_SLACK_S = 2.0
"""Time for the server to notice a timeout, and for the attack to notice the closed connection."""


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack, which is stopped after `limit_s`. Memory is measured again `settle_s` after its end."""

    name: str
    sends: str
    run: Run
    targets: Targets = field(default_factory=Targets)
    prepare: Run | None = None
    limit_s: float = 60
    settle_s: float = 2
    descriptors: int = 4096
    """Limit of file descriptors of a server that is started for the attack."""
    own_logs: bool = False
    """Whether each reader of the attack has a separate stream, and thus a separate event log."""


_FLOOD = Targets(connection_kib=2048)
"""For connections whose request is never admitted: the cost of their buffers and of memory the allocator keeps."""


async def _short_speech(attacker: Attacker, *, streams: int) -> None:
    await readers.finish_speech(attacker, attacker.strategies.speech, streams)


async def _short_speech_and_readers(attacker: Attacker, *, streams: int, count: int) -> None:
    await readers.finish_speech_and_resume(attacker, attacker.strategies.speech, streams=streams, readers=count)


async def _long_speech(attacker: Attacker, *, streams: int) -> None:
    await readers.finish_speech(attacker, attacker.strategies.long_speech, streams)


ATTACKS = (
    Attack("tiny-chunks-1", "audio in one-byte chunks, 1 connection", partial(uploads.tiny_chunks, connections=1)),
    Attack("tiny-chunks-4", "the same over 4 connections of one user", partial(uploads.tiny_chunks, connections=4)),
    Attack(
        "tiny-chunks-16", "the same over 16 connections of one user", partial(uploads.tiny_chunks, connections=16)
    ),
    Attack("tiny-json", "a JSON body in one-byte chunks, 4 connections", uploads.tiny_json, _FLOOD),
    Attack(
        "chunk-extensions", "chunk extensions: short, 4 KiB and endless, 6 connections", uploads.chunk_extensions
    ),
    Attack(
        "trailers",
        "endless trailer fields, short ones and 4 KiB each, 8 connections",
        uploads.trailer_flood,
        _FLOOD,
    ),
    Attack(
        "headers",
        "heads at and above the limits: fields of 15 and 64 KiB, 100, 2,000 and endless fields; 20 connections",
        heads.header_flood,
        _FLOOD,
    ),
    Attack(
        "pipeline",
        "5,000 requests per write, repeatedly, without reading a response, 8 connections",
        heads.pipeline_flood,
        _FLOOD,
    ),
    Attack(
        "slow-heads",
        "one byte of the head per second, 100 connections",
        heads.slow_heads,
        Targets(closed_within_s=10 + _SLACK_S),
    ),
    Attack("silence", "nothing, 100 connections", heads.silence, Targets(closed_within_s=10 + _SLACK_S)),
    Attack(
        "idle-uploads",
        "uploads that stop within the parameters or after them, 200 connections",
        uploads.idle_uploads,
        Targets(closed_within_s=30 + 10 + 2 * _SLACK_S),
        limit_s=90,
    ),
    Attack("large-audio", "10 MiB of audio, again and again, 4 connections", uploads.large_audio),
    Attack("large-json", "JSON bodies of 8 MiB, 6 connections of one user", uploads.large_json),
    Attack(
        "large-uploads",
        "files of 20 MiB without their last byte, 100 connections of one user",
        uploads.large_uploads,
        _FLOOD,
    ),
    Attack(
        "idle-connections",
        "1,500 connections from one address, silent after one request",
        floods.idle_connections,
        Targets(closed_within_s=75 + 2 * _SLACK_S, max_open=1000),
        limit_s=120,
    ),
    Attack(
        "exhaustion",
        "as many connections as the server has descriptors, from 6 addresses, while 40 other users make a request",
        floods.exhausted_connections,
        limit_s=90,
    ),
    Attack("reset-heads", "half a head, then RST, up to 20,000 times", floods.reset_heads),
    Attack("reset-streams", "RST at the first bytes of a response, up to 2,000 times", floods.reset_streams),
    Attack(
        "slow-live",
        "100 requests for speech, without reading the response",
        partial(readers.slow_live, readers=100),
        Targets(connection_kib=READER_KIB),
        prepare=partial(_short_speech, streams=1),
        own_logs=True,
    ),
    Attack(
        "slow-resumes-long",
        "320 readers of 20 finished long streams, without reading the response",
        partial(readers.slow_resumes, readers=320),
        Targets(connection_kib=READER_KIB),
        prepare=partial(_long_speech, streams=20),
    ),
    Attack(
        "slow-resumes",
        "2,000 readers of 125 finished streams, without reading the response, after as many before",
        partial(readers.slow_resumes, readers=2000),
        Targets(connection_kib=READER_KIB, memory_returns=True),
        prepare=partial(_short_speech_and_readers, streams=125, count=2000),
        limit_s=120,
        settle_s=30,
        descriptors=8192,
    ),
    Attack(
        "log",
        "unknown paths of 15 KiB, without a user, 8 connections",
        heads.log_flood,
        Targets(log_bytes_per_request=1024),
    ),
)
BY_NAME = {attack.name: attack for attack in ATTACKS}
