"""The table of attacks: what each sends, and what the server must hold against it."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench.attack import heads, hoards, readers, uploads
from bench.attack.attacker import Attacker
from bench.attack.judging import READER_KIB, Targets

Run = Callable[[Attacker], Coroutine[Any, Any, None]]
_SLACK_S = 2.0
"""For the server to see that a time is over, and for us to see that it closed."""


@dataclass(frozen=True, slots=True)
class Attack:
    """`limit_s` ends it whatever happens, `settle_s` passes before the memory after it is read."""

    name: str
    sends: str
    run: Run
    targets: Targets = field(default_factory=Targets)
    prepare: Run | None = None
    limit_s: float = 60
    settle_s: float = 2
    own_logs: bool = False
    """Whether each of its readers has a stream, and so an event log, of its own."""


_FLOOD = Targets(connection_kib=2048)
"""What a connection may cost whose request is never let in: its buffers, and what the allocator keeps."""


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
        "chunk-extensions", "chunk extensions, short, of 4 KiB and endless, 6 connections", uploads.chunk_extensions
    ),
    Attack(
        "trailers", "trailer fields without end, short and of 4 KiB, 8 connections", uploads.trailer_flood, _FLOOD
    ),
    Attack(
        "headers",
        "heads at and over the limits: 15 and 64 KiB in a field, 100 and 2,000 fields, endless; 20 connections",
        heads.header_flood,
        _FLOOD,
    ),
    Attack(
        "pipeline",
        "5,000 requests in a write, again and again, no answer read; 8 connections",
        heads.pipeline_flood,
        _FLOOD,
    ),
    Attack(
        "slow-heads",
        "a byte of the head a second, 100 connections",
        heads.slow_heads,
        Targets(closed_within_s=10 + _SLACK_S),
    ),
    Attack("silence", "nothing at all, 100 connections", heads.silence, Targets(closed_within_s=10 + _SLACK_S)),
    Attack(
        "idle-uploads",
        "uploads that stop inside the parameters or behind them, 200 connections",
        uploads.idle_uploads,
        Targets(closed_within_s=30 + 10 + 2 * _SLACK_S),
        limit_s=90,
    ),
    Attack(
        "idle-connections",
        "1,500 connections of one address, silent after one request",
        hoards.idle_connections,
        Targets(closed_within_s=75 + 2 * _SLACK_S, most_open=1000),
        limit_s=120,
    ),
    Attack(
        "exhaustion",
        "as many connections as the server has descriptors, of 6 addresses; then 40 answers for others",
        hoards.exhausted_connections,
        limit_s=90,
    ),
    Attack("reset-heads", "half a head, then RST, up to 20,000 times", hoards.reset_heads),
    Attack("reset-streams", "RST at the first bytes of a stream's answer, up to 2,000 times", hoards.reset_streams),
    Attack(
        "slow-live",
        "100 new answers of which nothing is read",
        partial(readers.slow_live, readers=100),
        Targets(connection_kib=READER_KIB),
        prepare=partial(_short_speech, streams=1),
        own_logs=True,
    ),
    Attack(
        "slow-resumes-long",
        "320 readers of 20 finished long answers, nothing read",
        partial(readers.slow_resumes, readers=320),
        Targets(connection_kib=READER_KIB),
        prepare=partial(_long_speech, streams=20),
    ),
    Attack(
        "slow-resumes",
        "2,000 readers of 125 finished answers, nothing read, after as many before",
        partial(readers.slow_resumes, readers=2000),
        Targets(connection_kib=READER_KIB, memory_returns=True),
        prepare=partial(_short_speech_and_readers, streams=125, count=2000),
        limit_s=120,
        settle_s=30,
    ),
    Attack(
        "log",
        "paths of 15 KiB that do not exist, no user, 8 connections",
        heads.log_flood,
        Targets(log_bytes_by_request=1024),
    ),
)
BY_NAME = {attack.name: attack for attack in ATTACKS}
