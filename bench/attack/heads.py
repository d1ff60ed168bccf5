"""Attacks by the head of a request, and by many requests: slow heads, large heads, pipelines, long paths."""

import asyncio

from bench.attack.attacker import Attacker, for_at_most, repeat, together

_SLOW = 100
_SLOW_BYTES = 20
_SILENT_S = 20.0
_LOG_CONNECTIONS = 8
_PATH_BYTES = 15 * 1024
_PIPELINED = 5_000


async def slow_heads(attacker: Attacker) -> None:
    """Heads of which one byte a second arrives."""

    async def one(number: int) -> None:
        connection = await attacker.connect()
        if connection is None or not await connection.send(attacker.head("GET", "/healthz") + b"X-Slow: "):
            return
        for _ in range(_SLOW_BYTES):
            if not await connection.send(b"a"):
                return
            await asyncio.sleep(1)

    await together(_SLOW, one)


async def silence(attacker: Attacker) -> None:
    """Connections that send nothing at all."""

    async def one(number: int) -> None:
        await attacker.connect()

    await together(_SLOW, one)
    await asyncio.sleep(_SILENT_S)


async def header_flood(attacker: Attacker) -> None:
    """Heads up to the limit and over it: many fields, long fields, and fields without end."""
    start = attacker.head("GET", "/healthz")
    few_long = start + b"X-Long: " + b"a" * (15 * 1024) + b"\r\n\r\n"
    too_long = start + b"X-Long: " + b"a" * (64 * 1024) + b"\r\n\r\n"
    many = start + b"".join(b"X-%d: a\r\n" % number for number in range(100)) + b"\r\n"
    too_many = start + b"".join(b"X-%d: a\r\n" % number for number in range(2000)) + b"\r\n"
    endless = b"X-Field: a\r\n" * 10_000
    await repeat(
        attacker,
        20,
        begin=[b"", b"", b"", b"", start],
        then=[few_long, too_long, many, too_many, endless],
    )


async def pipeline_flood(attacker: Attacker) -> None:
    """Thousands of requests in one write, again and again, without reading an answer."""
    request = attacker.head("GET", "/healthz") + b"\r\n"
    await repeat(attacker, 8, begin=[b""], then=[request * _PIPELINED])


async def log_flood(attacker: Attacker) -> None:
    """Paths of 15 KiB that do not exist, without a user, each answered before the next."""

    async def one(number: int) -> None:
        path = f"/{number}/" + "x" * _PATH_BYTES
        request = attacker.head("GET", path) + b"\r\n"
        connection = await attacker.connect()
        while connection is not None and await connection.send(request):
            if not await connection.receive():
                return
            attacker.requests += 1

    await for_at_most(attacker.for_s, together(_LOG_CONNECTIONS, one))
