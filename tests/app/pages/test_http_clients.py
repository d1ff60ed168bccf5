"""The examples of docs/guides/clients.md: HTTP clients that read the response while they send the body."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession

from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.peers.sse_client import events
from tests.peers.vendor import running_vendor
from tests.running.servers import Server

PATH = "/bp/ai/conversation"
PARAMS = dumps({"strategies": ["hello"], "type": "text", "language_code": "en-US", "target_language_code": "en-US"})
TOKEN = "X-Service-Session-Token"
WHOLE = ["start", "user_input", "assistant_output_chunk", "assistant_output_content_segment", "end"]
TIMEOUT_S = 20

CURL = [*("curl", "-N", "--no-progress-meter", "-X", "POST", "-T", "."), "-H", f"{TOKEN}: @token", "@url"]
NODE = ["node", "--input-type=module", "-e"]
NODE_HTTP = f"""
import http from "node:http";
const [url, token] = process.argv.slice(1);
const options = {{ method: "POST", headers: {{ "{TOKEN}": token }} }};
const request = http.request(url, options, (answer) => answer.pipe(process.stdout));
process.stdin.pipe(request);
"""
NODE_FETCH = f"""
const [url, token] = process.argv.slice(1);
const headers = {{ "{TOKEN}": token }};
const answer = await fetch(url, {{ method: "POST", headers, body: process.stdin, duplex: "half" }});
for await (const piece of answer.body) process.stdout.write(piece);
"""


@pytest.fixture
def server(shared_server: Server) -> Server:
    return shared_server


@pytest.fixture
async def token(server: Server) -> AsyncIterator[str]:
    """Return a session, and create a strategy `hello` with a fixed answer."""
    async with running_vendor() as vendor:
        configs = server.services.configs
        account = {"platform": "vendor_b_llm", "base_url": vendor.url}
        await configs.put("default", "vendor_accounts", "test", account, author="test", origin=COMMAND)
        chat = {"account": "test", "model": "say:Hello there"}
        await configs.put("default", "conversation", "hello", {"chat": chat}, author="test", origin=COMMAND)
        _, session_token = await server.login()
        yield session_token


async def test_aiohttp_reads_events_while_it_sends(server: Server, token: str) -> None:
    started = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield PARAMS
        await started.wait()
        yield b"How are "
        yield b"you?"

    seen = []
    async with (
        ClientSession() as http,
        http.post(server.url + PATH, data=body(), headers={TOKEN: token}) as answer,
    ):
        async for event in events(answer):
            seen.append(event)
            started.set()
    assert [event.name for event in seen] == WHOLE
    assert seen[1].content == "How are you?"


async def test_http_client_of_the_standard_library_reads_events_while_it_sends(server: Server, token: str) -> None:
    before, after = await asyncio.to_thread(_by_http_client, server.url, token)
    assert _names(before) == ["start"]
    assert _names(before + after) == WHOLE
    assert b'"How are you?"' in after


def _by_http_client(url: str, token: str) -> tuple[bytes, bytes]:
    """Return what was received before and after the input was sent."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_S)

    def send(piece: bytes) -> None:
        connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))

    with closing(connection):
        connection.putrequest("POST", PATH)
        connection.putheader(TOKEN, token)
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        send(PARAMS)
        answer = connection.getresponse()
        before = b"".join(iter(answer.readline, b"\n"))
        send(b"How are ")
        send(b"you?")
        send(b"")
        return before, answer.read()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(CURL, id="curl"),
        pytest.param([*NODE, NODE_HTTP, "@url", "@token"], id="node_http_request"),
        pytest.param([*NODE, NODE_FETCH, "@url", "@token"], id="node_fetch"),
    ],
)
async def test_a_program_prints_events_while_it_sends_its_input(
    server: Server, token: str, command: list[str]
) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    filled = [word.replace("@url", server.url + PATH).replace("@token", token) for word in command]
    async with _program(filled) as process, asyncio.timeout(TIMEOUT_S):
        process.stdin.write(PARAMS)
        before = await process.stdout.readuntil(b"\n\n")
        process.stdin.write(b"How are ")
        await process.stdin.drain()
        process.stdin.write(b"you?")
        process.stdin.write_eof()
        after = await process.stdout.read()
        assert await process.wait() == 0
    assert _names(before) == ["start"]
    assert _names(before + after) == WHOLE
    assert b'"How are you?"' in after


@asynccontextmanager
async def _program(command: list[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _names(stream: bytes) -> list[str]:
    return [line.removeprefix("event: ") for line in stream.decode().splitlines() if line.startswith("event: ")]
