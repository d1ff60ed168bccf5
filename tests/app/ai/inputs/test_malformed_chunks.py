"""A body with malformed HTTP chunks ends the stream immediately."""

import asyncio
from urllib.parse import urlsplit

import pytest

from tests.app.ai.conftest import Talk
from tests.running.servers import Server


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b"zz\r\nab\r\n", id="a size that is no number"),
        pytest.param(b"0\r\n" + (b"x: " + b"v" * 1019 + b"\r\n") * 64, id="too many trailers"),
    ],
)
async def test_malformed_chunks_end_the_stream_and_store_nothing(
    talk: Talk, strategy, server: Server, broken: bytes
) -> None:
    await strategy("one", "say:Fine")
    parameters = talk.params("one")
    head = (
        "POST /bp/ai/conversation HTTP/1.1\r\nHost: parley\r\nTransfer-Encoding: chunked\r\n"
        f"X-Service-Session-Token: {talk.token}\r\n\r\n{len(parameters):x}\r\n"
    )
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        writer.write(head.encode() + parameters + b"\r\n")
        async with asyncio.timeout(5):
            begun = await reader.readuntil(b"event: start")
            assert b"200 OK" in begun
            writer.write(broken)
            assert b"event: error" in await reader.read()
            await server.services.supervisor.idle()
    finally:
        writer.close()
    async with server.services.database.connection() as conn:
        assert await conn.fetchval("select count(*) from conversation_records") == 0
