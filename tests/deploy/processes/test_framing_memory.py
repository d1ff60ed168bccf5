"""Heads and trailers that never end cost a server process no memory."""

import asyncio
from contextlib import AsyncExitStack, suppress

import pytest
from aiohttp import ClientSession

from app.services import Services
from app.settings import Settings
from tests.deploy.processes.stalled_readers import http, server_process, settings

__all__ = ["http", "settings"]

KIB, MIB = 1024, 1024 * 1024
HEAD = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
UPLOAD = b"POST /bp/user/login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n"
FIELDS = (b"x-field: " + b"v" * 15 * KIB + b"\r\n") * 110
"""1.6 MiB: fewer fields than the parser's limit of 128, each below its limit of 16 KiB."""
CONNECTIONS = 12
ANSWER_S = 3


@pytest.mark.parametrize("opening", [HEAD, UPLOAD], ids=["head", "trailers"])
async def test_endless_requests_are_refused_without_memory_growth(
    services: Services, settings: Settings, http: ClientSession, opening: bytes
) -> None:
    async with server_process(settings, http) as server, AsyncExitStack() as connections:

        async def flooded() -> bytes:
            """Return the status line of the response to an unfinished request, or empty text if there is none."""
            reader, writer = await asyncio.open_connection("127.0.0.1", settings.port)
            connections.callback(writer.close)
            writer.write(opening + FIELDS)
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(ANSWER_S):
                    return await reader.readline()
            return b""

        await flooded()
        before = server.rss_bytes
        answers = await asyncio.gather(*(flooded() for _ in range(CONNECTIONS)))
        assert server.rss_bytes - before < 2 * MIB
        assert set(answers) == {b"HTTP/1.1 400 Bad Request\r\n"}
