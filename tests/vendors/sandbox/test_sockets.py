"""Sockets of a sandbox: frames, faults and disconnects."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import WSMsgType, web

from tests.calendar.clock import epoch_ms
from tests.vendors.sandbox.requests import CHAT, SandboxClient, chat
from vendors.sandbox.calls import Call, Dialect, Framing, Refusal
from vendors.sandbox.faults import Fault, KeyOptions
from vendors.sandbox.flow import Close
from vendors.sandbox.sandbox import Sandbox
from vendors.sandbox.server import Running
from vendors.sandbox.sockets import ClientLeft


def _key(request: web.Request) -> str:
    return request.headers.get("X-Key", "")


def _refuse(fault: Fault, key_options: KeyOptions) -> Refusal:
    return Refusal(418, {"refused": fault})


PARROT = Dialect("parrot", _key, _refuse)
SQUAWK = Framing("websocket", error=Close(1011, "tired"), malformed="{")


@asynccontextmanager
async def parrot(key: str, say: Callable[[Call], Awaitable[None]]) -> AsyncIterator[tuple[str, Sandbox]]:
    """Run a vendor whose socket handler is `say`."""
    sandbox = Sandbox()
    app = web.Application()
    app.add_routes([sandbox.get("/parrot", PARROT, "tts", say)])
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"ws://127.0.0.1:{runner.addresses[0][1]}/parrot", sandbox
    finally:
        await runner.cleanup()


async def _repeat(call: Call) -> None:
    """Echo three messages."""
    async with call.socket(SQUAWK) as (socket, flow):
        await flow.frame("hello")
        for _ in range(3):
            message = await socket.receive()
            await flow.output(message, characters=len(message))
        await flow.frame("bye")


async def _converse(key: str) -> tuple[list[object], int | None, Sandbox]:
    """Send `a`, `bb` and `ccc`. Return the replies and the close code."""
    heard: list[object] = []
    async with (
        parrot(key, _repeat) as (url, sandbox),
        aiohttp.ClientSession() as http,
        http.ws_connect(url, headers={"X-Key": key}) as socket,
    ):
        for message in ("a", b"bb", "ccc"):
            await (socket.send_str(message) if isinstance(message, str) else socket.send_bytes(message))
        async for message in socket:
            if message.type not in {WSMsgType.TEXT, WSMsgType.BINARY}:
                break
            heard.append(message.data)
        await sandbox.bill.wait()
        return heard, socket.close_code, sandbox


async def test_sockets_yield_frames_and_close_normally():
    heard, code, sandbox = await _converse("sandbox")

    assert (heard, code) == (["hello", "a", b"bb", "ccc", "bye"], 1000)
    (entry,) = sandbox.bill.since()
    assert (entry.how, entry.outputs, entry.billed) == ("done", 3, {"characters": 6})


@pytest.mark.parametrize(
    ("fault", "heard", "code"),
    [
        ("error_inside_200", ["hello", "a"], 1011),
        ("error_inside_200,position=before", ["hello"], 1011),
        ("malformed_frame", ["hello", "a", "{", b"bb", "ccc", "bye"], 1000),
        ("cut_mid_stream,position=2", ["hello", "a", b"bb"], 1006),
        ("cut_mid_stream,position=before", ["hello"], 1006),
        ("empty_answer", ["hello", "bye"], 1000),
    ],
)
async def test_faults_occur_on_sockets_too(fault: str, heard: list[object], code: int):
    reported, closed, sandbox = await _converse(f"sandbox,fault={fault}")

    assert (reported, closed) == (heard, code)
    assert [entry.how for entry in sandbox.bill.since()] == ["fault"]


async def test_socket_is_refused_before_its_handshake():
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await _converse("sandbox,fault=rate_limited")

    assert error.value.status == 418


@pytest.mark.parametrize("key", ["sandbox,fault=stall_mid_stream", "sandbox,fault=hang_before_output", "sandbox"])
async def test_a_socket_that_the_client_closes_is_noticed_immediately(key: str):
    async with parrot(key, _repeat) as (url, sandbox), aiohttp.ClientSession() as http:
        async with http.ws_connect(url, headers={"X-Key": key}) as socket:
            await socket.send_str("a")
            assert (await socket.receive_str()) == "hello"
            if "hang" not in key:
                assert (await socket.receive_str()) == "a"
            left_ms = epoch_ms()
        async with asyncio.timeout(5):
            entry = await sandbox.bill.wait()

    assert entry.closed_ms is not None
    assert entry.closed_ms - left_ms < 1_000


async def test_a_client_may_close_after_the_last_output():
    async def listen(call: Call) -> None:
        async with call.socket(SQUAWK) as (socket, flow):
            await flow.output("all")
            with pytest.raises(ClientLeft):
                await socket.receive()

    async with parrot("sandbox", listen) as (url, sandbox), aiohttp.ClientSession() as http:
        async with http.ws_connect(url, headers={"X-Key": "sandbox"}) as socket:
            assert (await socket.receive_str()) == "all"
        async with asyncio.timeout(5):
            entry = await sandbox.bill.wait()

    assert entry.how == "done"


async def test_options_that_the_protocol_cannot_honour_are_reported():
    async def mute(call: Call) -> None:
        async with call.socket(Framing("websocket")):
            raise AssertionError("it is refused before")

    async with parrot("sandbox", mute) as (url, _), aiohttp.ClientSession() as http:
        headers = {"X-Key": "sandbox,fault=malformed_frame"}
        with pytest.raises(aiohttp.WSServerHandshakeError) as error:
            await http.ws_connect(url, headers=headers)

    assert error.value.status == 501


async def test_sandboxes_are_independent(sandbox: Running, ask: SandboxClient):
    async with parrot("sandbox", _repeat) as (_, other), ask.post(CHAT, chat()) as response:
        await response.read()

    assert len(list(sandbox.bill.since())) == 1
    assert list(other.bill.since()) == []
