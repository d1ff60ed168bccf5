"""Attacks with request heads and with many requests: slow heads, large heads, pipelines, long paths."""

import asyncio

from bench.attack.attacker import Attacker, for_at_most, repeat, together

_SLOW = 100
_SLOW_BYTES = 20
_SILENT_S = 20.0
_LOG_CONNECTIONS = 8
_PATH_BYTES = 15 * 1024
_PIPELINED = 5_000


async def slow_heads(attacker: Attacker) -> None:
    """Send request heads at one byte per second."""

    async def worker(number: int) -> None:
        connection = await attacker.connect()
        if connection is None or not await connection.send(attacker.head("GET", "/healthz") + b"X-Slow: "):
            return
        for _ in range(_SLOW_BYTES):
            if not await connection.send(b"a"):
                return
            await asyncio.sleep(1)

    await together(_SLOW, worker)


async def silence(attacker: Attacker) -> None:
    """Open connections and send nothing."""

    async def worker(number: int) -> None:
        await attacker.connect()

    await together(_SLOW, worker)
    await asyncio.sleep(_SILENT_S)


async def header_flood(attacker: Attacker) -> None:
    """Send heads below and above the limits: many fields, long fields and endless fields."""
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
    """Send thousands of requests per write, repeatedly, without reading a response."""
    request = attacker.head("GET", "/healthz") + b"\r\n"
    await repeat(attacker, 8, begin=[b""], then=[request * _PIPELINED])


async def log_flood(attacker: Attacker) -> None:
    """Request unknown paths of 15 KiB without a user, one request at a time on each connection."""

    async def worker(number: int) -> None:
        path = f"/{number}/" + "x" * _PATH_BYTES
        request = attacker.head("GET", path) + b"\r\n"
        connection = await attacker.connect()
        while connection is not None and await connection.send(request):
            if not await connection.receive():
                return
            attacker.requests += 1

    await for_at_most(attacker.for_s, together(_LOG_CONNECTIONS, worker))
