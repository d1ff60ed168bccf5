"""Large histories: limits on one response, and on the memory and time of clients that do not read."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession, web
from structlog.testing import capture_logs

from app.http.request.large_responses import UNSENT_BYTES, UnsentBytes
from app.http.serving.server import runner_of
from app.main import application
from app.services import Services
from storage.operators.audit import COMMAND
from streams.wire.codec import dumps
from tests.app.ai.conftest import Talk
from tests.running.servers import Server
from tests.waiting import until

MIB = 1024 * 1024
PATH = "/bp/ai/conversation/query"
MAX_HELD = 7
"""The number of responses of slightly more than 1 MiB that fit into 8 MiB."""


async def limited(server: Server, **fields: Any) -> None:
    await server.services.configs.put("default", "limits", "default", fields, author="test", origin=COMMAND)


async def turn(talk: Talk, text: str, strategy: str) -> None:
    async with talk.say(text, strategy) as response:
        talk.remember(response)
        assert b"event: end\n" in await response.read()


def query(talk: Talk, **fields: Any) -> Any:
    return talk.get(PATH, params={"conversation_id": talk.conversation_id, "size": 100, **fields})


async def records(talk: Talk, **fields: Any) -> list[dict[str, Any]]:
    return (await talk.history(size=100, **fields))["conversation_records"]


@contextmanager
def asking(talk: Talk, port: int) -> Iterator[socket.socket]:
    """A client that requests its history and reads nothing. Its receive buffer is minimal."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.sendall(
            f"GET {PATH}?conversation_id={talk.conversation_id}&size=100 HTTP/1.1\r\nHost: parley\r\n"
            f"X-Service-Session-Token: {talk.token}\r\n\r\n".encode()
        )
        client.setblocking(False)
        yield client


async def begun(client: socket.socket) -> None:
    async with asyncio.timeout(20):
        assert await asyncio.get_running_loop().sock_recv(client, 12) == b"HTTP/1.1 200"


async def refused(response: ClientResponse, status: int, error_type: str, message: str) -> None:
    error = (await response.json())["error"]
    assert (response.status, error["error_type"]) == (status, error_type), error
    assert message in error["message"]
    assert int(response.headers["Retry-After"]) >= 1


async def test_history_pages_are_limited_to_one_mebibyte(talk: Talk, strategy) -> None:
    await strategy("one", "wide:400")
    for number in range(5):
        await turn(talk, f"turn {number}", "one")
    async with query(talk) as response:
        assert len(await response.read()) < MIB + 64 * 1024
    pages, newest = [], -1
    while page := await records(talk, **{"from": newest}):
        pages.append([record["record_id"] for record in page])
        if (newest := page[-1]["record_id"] - 1) == 0:
            break
    assert pages == [[5, 4], [3, 2], [1]]
    assert [record["record_id"] for record in await records(talk, record_id=2)] == [2]


async def test_a_record_of_any_size_can_be_read(talk: Talk, strategy, server: Server) -> None:
    await limited(server, answer_bytes=4 * MIB)
    await strategy("one", "wide:3000")
    await strategy("small", "say:Fine")
    await turn(talk, "tell me", "one")
    await turn(talk, "thanks", "small")
    assert [record["record_id"] for record in await records(talk)] == [2]
    [record] = await records(talk, **{"from": 1})
    assert len(record["content"][1]["content"][0]["text"]) > 2.9 * MIB


async def test_text_that_looks_like_a_key_is_returned_unchanged(talk: Talk, strategy) -> None:
    await strategy("one", "say:Fine")
    said = ['}, {"audio_url": {"key": "conversation/a.wav"}}, \\"viseme_url\\": {\\"key\\": \\"b\\"}\n' * 300] * 5
    said += ['"audio_url": {"key": "a.wav"}', "\\", 'ends with "audio_url', "é}, {😀" * 2000]
    for text in said:
        await turn(talk, text, "one")
    found = [record["content"][0]["content"][0]["text"] for record in reversed(await records(talk))]
    assert found == said


@pytest.mark.usefixtures("local_vendors")
async def test_links_of_a_long_history_are_valid(talk: Talk, server: Server) -> None:
    for text in ["Hello"] + ["x" * 30_000] * 3:
        await turn(talk, text, "scripted")
    items = [item for record in await records(talk) for item in record["content"][1]["content"]]
    urls = [item["audio_url"]["url"] for item in items if item["type"] == "audio_url"]
    assert len(urls) >= 4
    for url in urls:
        async with server.http.get(url) as response:
            assert response.status == 200


@pytest.fixture
async def large(talk: Talk, strategy, server: Server) -> Talk:
    """A user with a history of a little over 1 MiB."""
    await strategy("one", "wide:1023")
    await turn(talk, "tell me", "one")
    await limited(server, send_timeout_s=3)
    return talk


async def test_unread_answers_of_a_user_are_bounded_and_cut_after_the_send_timeout(
    large: Talk, server: Server
) -> None:
    other = Talk(server, *(await server.login()))
    with ExitStack() as stack:
        port = server.services.settings.port
        for _ in range(MAX_HELD):
            await begun(stack.enter_context(asking(large, port)))
        async with query(large) as response:
            await refused(response, 429, "api_rate_limit", "too many large responses")
        async with other.get("/bp/ai/conversations") as response:
            assert response.status == 200
        async with large.get("/bp/ai/conversations") as response:
            assert response.status == 200, "what is small is answered"
        async with asyncio.timeout(20):
            while True:
                async with query(large) as response:
                    if response.status == 200:
                        assert len(await response.read()) > MIB
                        break


async def test_a_stalled_reader_is_disconnected(large: Talk, server: Server) -> None:
    with asking(large, server.services.settings.port) as client, capture_logs() as said:
        await begun(client)
        await until(lambda: any(line.get("path") == PATH and line["status"] == 499 for line in said), within_s=20)


async def test_a_disconnected_reader_frees_its_slot_immediately(large: Talk, server: Server) -> None:
    await limited(server, send_timeout_s=60)
    port = server.services.settings.port
    for _ in range(MAX_HELD + 1):
        with asking(large, port) as client:
            await begun(client)
    async with asyncio.timeout(10):
        while True:
            async with query(large) as response:
                if response.status == 200:
                    break


async def test_a_slow_reader_gets_all_of_it(large: Talk, server: Server) -> None:
    loop, read = asyncio.get_running_loop(), bytearray()
    with asking(large, server.services.settings.port) as client:
        async with asyncio.timeout(30):
            while b"\r\n\r\n" not in read:
                read += await loop.sock_recv(client, 4096)
            head, _, body = bytes(read).partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            read = bytearray(body)
            while len(read) < length:
                read += await loop.sock_recv(client, 16_384)
                await asyncio.sleep(0.001)
    async with query(large) as response:
        assert await response.read() == read


@pytest.fixture
async def narrow(services: Services) -> AsyncIterator[int]:
    """The port of a second server on the same services, which holds at most 2 MiB of large responses."""
    app = application(services)
    app[UNSENT_BYTES] = UnsentBytes(per_process=2 * MIB)
    runner = runner_of(app, shutdown_timeout_s=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def test_unread_answers_of_a_process_are_bounded(large: Talk, server: Server, narrow: int, strategy) -> None:
    other = Talk(server, *(await server.login()))
    await turn(other, "tell me", "one")
    headers = {"X-Service-Session-Token": other.token}
    url = f"http://127.0.0.1:{narrow}{PATH}?conversation_id={other.conversation_id}"
    with asking(large, narrow) as client:
        await begun(client)
        async with ClientSession() as http, http.get(url, headers=headers) as response:
            await refused(response, 503, "backend unavailable", "too many large responses")
    assert dumps(await records(other)), "another process answers"
