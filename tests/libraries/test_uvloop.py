"""The undocumented behaviour of uvloop that `app/http/serving/connections.py` and `streams/sse.py` depend on."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvloop

from tests.libraries.installed import version_fault

MANY = 8 * 1024 * 1024
"""Bytes that exceed the buffers of a socket."""


class Recorded(asyncio.Protocol):
    """Records what the loop calls."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.resumed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.calls.append("read")

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")
        self.resumed.set()


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[asyncio.Transport, Recorded, socket.socket]]:
    """Connect to a socket of the test by TCP."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(Recorded, *listener.getsockname())
        peer, _ = listener.accept()
        peer.setblocking(False)
        try:
            yield transport, protocol, peer
        finally:
            transport.abort()
            peer.close()


def test_the_version_is_in_the_range_that_was_tested() -> None:
    assert version_fault("uvloop") is None


async def test_sockets_are_read_before_timers_run() -> None:
    assert isinstance(asyncio.get_running_loop(), uvloop.Loop)
    async with connected() as (_, protocol, peer):
        timer = asyncio.Event()

        def expire() -> None:
            protocol.calls.append("timer")
            timer.set()

        asyncio.get_running_loop().call_later(0.02, expire)
        peer.send(b"late")
        time.sleep(0.3)  # noqa: TID251, ASYNC251 - the loop is busy while the bytes arrive and the timer becomes due
        await timer.wait()

        assert protocol.calls == ["read", "timer"], (
            "uvloop runs timers before it reads sockets: _sweep() in app/http/serving/connections.py would close "
            "connections whose head arrived while the loop was busy"
        )


async def test_writing_pauses_as_soon_as_the_transport_holds_data() -> None:
    async with connected() as (transport, protocol, peer):
        transport.set_write_buffer_limits(high=0)
        transport.writelines((b"head", memoryview(bytes(MANY)), b"end"))

        assert protocol.calls == ["pause"], (
            "uvloop does not call pause_writing() inside a write that the socket does not accept: streams/sse.py "
            "would write more frames to a reader that lags"
        )
        loop = asyncio.get_running_loop()
        left = len(b"head") + MANY + len(b"end")
        async with asyncio.timeout(20):
            while left:
                left -= len(await loop.sock_recv(peer, 1 << 20))
            await protocol.resumed.wait()
        assert protocol.calls == ["pause", "resume"]


async def test_a_write_that_the_socket_accepts_does_not_pause_writing() -> None:
    async with connected() as (transport, protocol, peer):
        transport.set_write_buffer_limits(high=0)
        transport.write(b"frame")

        assert protocol.calls == [], (
            "uvloop pauses writing although the socket accepts the data: see streams/sse.py"
        )
        assert await asyncio.get_running_loop().sock_recv(peer, 100) == b"frame"


async def test_options_of_a_socket_can_be_set_by_its_transport() -> None:
    async with connected() as (transport, _, _):
        sock = transport.get_extra_info("socket")
        assert sock.family == socket.AF_INET, (
            "the socket of uvloop's transport has no family: see limit_send_buffer()"
        )
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)

        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in {8192, 16384}
