"""nginx passes input and events on immediately and unchanged."""

import asyncio
import base64
import hashlib
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession, web
from yarl import URL

from storage.operators.audit import COMMAND
from streams.audio.audio import wav_header
from streams.wire.codec import dumps
from tests.deploy.proxies.nginx import NGINX, Nginx, running_nginx
from tests.peers.sse_client import SeenEvent, events
from tests.running.servers import Server, listening_socket

CONVERSATION = "/bp/ai/conversation"
TOKEN = "X-Service-Session-Token"
PARAMS = {"strategies": ["paced"], "language_code": "en-US", "target_language_code": "en-US"}
WORDS = ["Once ", "upon ", "a ", "time."]
PAUSE_S = 0.005
TIMEOUT_S = 20

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


@dataclass
class Vendor:
    """Sends a word at a time as the test says; an empty word ends the answer. Transcribes audio to its digest."""

    url: str = ""
    words: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            while word := await self.words.get():
                await response.write(b"data: %b\n\n" % dumps({"choices": [{"delta": {"content": word}}]}))
        except asyncio.CancelledError:
            self.left.set()
            raise
        await response.write(b"data: [DONE]\n\n")
        return response

    async def transcribe(self, request: web.Request) -> web.Response:
        form = await request.post()
        heard = form["file"].file.read()
        return web.json_response({"text": hashlib.sha256(heard).hexdigest()})


@pytest.fixture
async def vendor() -> AsyncIterator[Vendor]:
    vendor = Vendor()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", vendor.chat)
    app.router.add_post("/v1/audio/transcriptions", vendor.transcribe)
    async with _listening(app, handler_cancellation=True) as url:
        vendor.url = f"{url}/v1"
        yield vendor


@pytest.fixture
async def token(server: Server, vendor: Vendor) -> str:
    """A session token, and the strategy `paced` of the test's vendor."""
    call = {"account": "test"}
    for kind, name, value in (
        ("vendor_accounts", "test", {"platform": "local_audio", "base_url": vendor.url}),
        ("vendor_accounts", "chat", {"platform": "vendor_b_llm", "base_url": vendor.url}),
        ("recognition", "digest", call),
        ("conversation", "paced", {"chat": {"account": "chat"}, "recognition": "digest"}),
    ):
        await server.services.configs.put("default", kind, name, value, author="test", origin=COMMAND)
    _, session_token = await server.login()
    return session_token


@pytest.fixture
def nginx(server: Server, tmp_path: Path) -> Iterator[Nginx]:
    with running_nginx(tmp_path, urlsplit(server.url).netloc) as running:
        yield running


@asynccontextmanager
async def _listening(app: web.Application, **options: Any) -> AsyncIterator[str]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, **options)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield "http://{}:{}".format(*runner.addresses[0])
    finally:
        await runner.cleanup()


async def _pieces(body: bytes, size_bytes: int) -> AsyncIterator[bytes]:
    """Yield pieces with pauses between them, so that a proxy does not join them."""
    for at in range(0, len(body), size_bytes):
        yield body[at : at + size_bytes]
        await asyncio.sleep(PAUSE_S)


@dataclass(frozen=True)
class ReceivedStream:
    headers: Mapping[str, str]
    events: list[SeenEvent]


async def _converse(
    http: ClientSession, url: str, token: str, vendor: Vendor, *, kind: str, said: bytes
) -> ReceivedStream:
    """Run a turn in lock step: each side continues only when the other has received the previous piece.

    The input waits for `start`, and the vendor's next word for the event of the last.
    """
    started = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        async for piece in _pieces(dumps({**PARAMS, "type": kind}) + b" \r\n" + said[:5], 7):
            yield piece
        await started.wait()
        async for piece in _pieces(said[5:], 97):
            yield piece

    async with (
        asyncio.timeout(TIMEOUT_S),
        http.post(url + CONVERSATION, data=body(), headers={TOKEN: token}) as answer,
    ):
        stream = events(answer)
        seen = [await anext(stream)]
        started.set()
        seen.append(await anext(stream))
        for word in WORDS:
            vendor.words.put_nowait(word)
            seen.append(await anext(stream))
            assert seen[-1].content["text"] == word
        vendor.words.put_nowait("")
        seen += [event async for event in stream]
        return ReceivedStream(answer.headers, seen)


def _same(event: SeenEvent) -> tuple[int | None, str, Any]:
    """Return the part of an event that is the same in every turn."""
    content = event.content
    if event.name == "end":
        content = {name: value for name, value in content.items() if name not in {"conversation_id", "latency_ms"}}
    return event.id, event.name, content


async def test_nginx_passes_each_event_unchanged(server: Server, nginx: Nginx, vendor: Vendor, token: str) -> None:
    said = "Erzähl mir … eine Geschichte 🎈".encode()
    direct = await _converse(server.http, server.url, token, vendor, kind="text", said=said)
    passed = await _converse(server.http, nginx.url, token, vendor, kind="text", said=said)
    assert direct.events[1].content == said.decode()
    assert [_same(event) for event in passed.events] == [_same(event) for event in direct.events]
    for name in ("Content-Type", "Cache-Control", "Transfer-Encoding"):
        assert passed.headers[name] == direct.headers[name]
    for name in ("X-Request-Id", "X-Service-Stream-Id", "X-Service-Conversation-Id"):
        assert passed.headers[name]
    assert "Content-Encoding" not in passed.headers


async def test_a_spoken_turn_works_in_small_pieces(
    server: Server, nginx: Nginx, vendor: Vendor, token: str
) -> None:
    audio = bytes(at * at % 251 for at in range(6_001))
    said = base64.b64encode(audio)
    passed = await _converse(server.http, nginx.url, token, vendor, kind="audio", said=said)
    assert passed.events[1].content == hashlib.sha256(wav_header(16_000, data_bytes=len(audio)) + audio).hexdigest()


async def test_a_turn_streams_in_both_directions_over_tls_and_http_2(
    nginx: Nginx, vendor: Vendor, token: str, tmp_path: Path
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    process = await asyncio.create_subprocess_exec(
        *("curl", "-kN", "--http2", "--no-progress-meter", "-D", tmp_path / "headers", "-X", "POST", "-T", "."),
        *("-H", f"{TOKEN}: {token}", nginx.tls_url + CONVERSATION),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            process.stdin.write(dumps({**PARAMS, "type": "text"}))
            assert b"event: start\n" in await process.stdout.readuntil(b"\n\n")
            process.stdin.write(b"Tell me a story")
            process.stdin.write_eof()
            assert b'"Tell me a story"' in await process.stdout.readuntil(b"\n\n")
            for word in WORDS:
                vendor.words.put_nowait(word)
                assert dumps(word) in await process.stdout.readuntil(b"\n\n")
            vendor.words.put_nowait("")
            assert b"event: end\n" in await process.stdout.read()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (tmp_path / "headers").read_text().startswith("HTTP/2 200")


async def test_the_server_notices_a_caller_that_disconnects(
    server: Server, nginx: Nginx, vendor: Vendor, token: str
) -> None:
    limits = {"ping_after_s": 0.05, "resume_grace_s": 0}
    await server.services.configs.put("default", "limits", "default", limits, author="test", origin=COMMAND)
    body = dumps({**PARAMS, "type": "text"}) + b"Tell me a story"
    async with asyncio.timeout(TIMEOUT_S):
        async with server.http.post(nginx.url + CONVERSATION, data=body, headers={TOKEN: token}) as answer:
            vendor.words.put_nowait(WORDS[0])
            async for event in events(answer):
                if event.name == "assistant_output_chunk":
                    break
        await vendor.left.wait()


async def test_a_refusal_is_the_servers_own_and_does_not_wait_for_the_rest(server: Server, nginx: Nginx) -> None:
    answered = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield dumps({**PARAMS, "type": "text"})
        await answered.wait()

    async with (
        asyncio.timeout(TIMEOUT_S),
        server.http.post(nginx.url + CONVERSATION, data=body()) as answer,
    ):
        refusal = await answer.json()
        answered.set()
    assert answer.status == 400
    assert refusal["error"]["error_type"] == "account.invalid_session"


async def test_nginx_passes_the_path_and_adds_the_client_address(server: Server, tmp_path: Path) -> None:
    async def reported(request: web.Request) -> web.Response:
        return web.json_response({"path": request.raw_path, **request.headers})

    app = web.Application()
    app.router.add_get("/{path:.*}", reported)
    path = "/bp/a%2Fb//c/../d?q=%20+&url=http://x/%C3%A9"
    async with _listening(app) as parley:
        with running_nginx(tmp_path, urlsplit(parley).netloc) as nginx:
            url = URL(nginx.url + path, encoded=True)
            async with server.http.get(url, headers={"X-Forwarded-For": "192.0.2.7"}) as answer:
                heard = await answer.json()
            assert "http://x/" not in nginx.access_log.read_text()
    assert heard["path"] == path
    assert heard["X-Forwarded-For"] == "192.0.2.7, 127.0.0.1"
    assert heard["Host"] == "127.0.0.1"
    assert "Connection" not in heard


async def test_callers_get_an_envelope_while_no_server_is_available(server: Server, tmp_path: Path) -> None:
    with listening_socket() as nobody:
        parley = "{}:{}".format(*nobody.getsockname())
    with running_nginx(tmp_path, parley) as nginx:
        async with server.http.post(nginx.url + CONVERSATION, data=b"{}") as answer:
            assert answer.status == 502
            assert answer.headers["Retry-After"] == "1"
            assert (await answer.json())["error"]["error_type"] == "gateway"
