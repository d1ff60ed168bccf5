"""Large bodies of a user, and of all users, are limited while they arrive and until they are answered."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.http.request.held_bodies import HeldBodies
from storage.operators.audit import COMMAND
from streams.wire.codec import dumps, loads
from tests.running.servers import Server
from tests.waiting import until

MIB = 1024 * 1024
PIECE_BYTES = 8 * MIB
FILE_BYTES = 20 * MIB
NOWHERE = "http://127.0.0.1:9/v1"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Callable[[], int]:
    """How many bytes the server of the test holds. The parameter changes its limits."""
    made: list[HeldBodies] = []

    class Watched(HeldBodies):
        def __init__(self) -> None:
            super().__init__(**getattr(request, "param", {}))
            made.append(self)

    monkeypatch.setattr("app.main.HeldBodies", Watched)
    return lambda: made[-1].size_bytes


class Upload:
    """An upload that is sent in parts."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, chunked: bool) -> None:
        self._reader, self._writer, self._chunked = reader, writer, chunked
        self._sent = 0

    async def send(self, size_bytes: int) -> None:
        part = (b"" if self._sent else PNG).ljust(size_bytes, b"x")
        self._sent += size_bytes
        self._writer.write(b"%x\r\n%b\r\n" % (size_bytes, part) if self._chunked else part)
        await self._writer.drain()

    def break_off(self) -> None:
        self._writer.transport.abort()

    async def end(self) -> tuple[int, str]:
        """Send the rest. Return the status of the response, and its error type."""
        if self._chunked:
            self._writer.write(b"0\r\n\r\n")
        elif self._sent < FILE_BYTES:
            await self.send(FILE_BYTES - self._sent)
        return await self.response()

    async def response(self) -> tuple[int, str]:
        async with asyncio.timeout(20):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            body = loads(await self._reader.readexactly(int(length.partition(b":")[2])))
        return int(head.split()[1]), body.get("error", {}).get("error_type", "")


@asynccontextmanager
async def uploading(server: Server, session: str, *, chunked: bool = False) -> AsyncIterator[Upload]:
    url = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {FILE_BYTES}"
    head = f"PUT /bp/ai/upload HTTP/1.1\r\nHost: a\r\nX-Service-Session-Token: {session}\r\n{framing}\r\n\r\n"
    writer.write(head.encode())
    try:
        yield Upload(reader, writer, chunked=chunked)
    finally:
        writer.close()


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_user_with_too_many_large_bodies_is_refused_and_others_are_not(
    held: Callable[[], int], server: Server, chunked: bool
) -> None:
    (_, session), (_, other) = await server.login(), await server.login()
    async with AsyncExitStack() as stack:
        uploads = [await stack.enter_async_context(uploading(server, session, chunked=chunked)) for _ in range(8)]
        for upload in uploads:
            await upload.send(PIECE_BYTES)
        await until(lambda: held() == 8 * PIECE_BYTES)
        async with uploading(server, session, chunked=chunked) as one_more:
            await one_more.send(PIECE_BYTES)
            assert await one_more.response() == (429, "api_rate_limit")
        async with uploading(server, other, chunked=chunked) as of_another:
            await of_another.send(PIECE_BYTES)
            assert (await of_another.end())[0] == 200
        assert held() == 8 * PIECE_BYTES
        for upload in uploads[1:]:
            upload.break_off()
        await until(lambda: held() == PIECE_BYTES)
        assert (await uploads[0].end())[0] == 200
    await until(lambda: held() == 0)


async def test_the_process_refuses_large_bodies_beyond_its_limit(held: Callable[[], int], server: Server) -> None:
    await put(server, "limits/default", {"input_idle_s": 600})  # Each upload pauses while the others send.
    sessions = [(await server.login())[1] for _ in range(5)]
    async with AsyncExitStack() as stack:
        uploads = [await stack.enter_async_context(uploading(server, sessions[at // 4])) for at in range(16)]
        for upload in uploads:
            await upload.send(2 * PIECE_BYTES)
        await until(lambda: held() == 32 * PIECE_BYTES)
        async with uploading(server, sessions[-1]) as one_more:
            await one_more.send(PIECE_BYTES)
            assert await one_more.response() == (503, "backend unavailable")
        await server.login()  # Small bodies are not limited.
    await until(lambda: held() == 0)


async def put(server: Server, config: str, value: dict[str, Any]) -> None:
    kind, _, name = config.partition("/")
    await server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)


def spoken(audio: bytes) -> bytes:
    """Return the beginning of a conversation whose audio has not ended."""
    parameters = {
        "strategies": ["one"],
        "type": "audio",
        "language_code": "en",
        "target_language_code": "en",
    }
    return dumps(parameters) + b64encode(audio)


@pytest.mark.parametrize("held", [{"per_caller": 4 * MIB}], indirect=True)
async def test_long_audio_is_limited_and_short_audio_is_not(held: Callable[[], int], server: Server) -> None:
    (_, session), url = await server.login(), urlsplit(server.url)
    await put(server, "vendor_accounts/ears", {"platform": "vendor_b_audio", "base_url": NOWHERE})
    await put(server, "vendor_accounts/llm", {"platform": "vendor_b_llm", "base_url": NOWHERE})
    await put(server, "recognition/ears", {"account": "ears", "model": "whisper-1"})
    await put(server, "conversation/one", {"chat": {"account": "llm", "model": "a"}, "recognition": "ears"})
    async with AsyncExitStack() as stack:

        async def say(audio: bytes) -> asyncio.StreamReader:
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            stack.callback(writer.close)
            head = f"POST /bp/ai/conversation HTTP/1.1\r\nHost: a\r\nX-Service-Session-Token: {session}\r\n"
            writer.write(f"{head}Content-Length: {FILE_BYTES}\r\n\r\n".encode() + spoken(audio))
            return reader

        await say(bytes(4 * MIB))
        await until(lambda: held() > 2.9 * MIB)
        await say(bytes(MIB // 2))
        refused = await say(bytes(3 * MIB))
        async with asyncio.timeout(20):
            events = await refused.readuntil(b"event: error\n")
            error = await refused.readuntil(b"}\n")
        assert events.startswith(b"HTTP/1.1 200")
        assert b"api_rate_limit" in error
        await until(lambda: held() < 3.1 * MIB)
    await until(lambda: held() == 0)
