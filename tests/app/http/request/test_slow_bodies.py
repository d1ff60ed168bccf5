"""A body may arrive slowly as long as it keeps arriving: a pause and the whole time are limited separately."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import Any

import pytest

from storage.operators.audit import COMMAND
from tests.running.servers import Server

PNG = b"\x89PNG\r\n\x1a\n"
PAUSE_S = 0.02


async def limits(server: Server, **values: Any) -> None:
    await server.services.configs.put("default", "limits", "default", values, author="test", origin=COMMAND)


async def trickled(head: bytes, *, for_s: float, tail: bytes = b"") -> AsyncIterator[bytes]:
    """Yield `head`, then single bytes for a while, then `tail`."""
    until = monotonic() + for_s
    yield head
    while monotonic() < until:
        await asyncio.sleep(PAUSE_S)
        yield b" "
    yield tail


async def stalled(head: bytes, reported: Awaitable[Any]) -> AsyncIterator[bytes]:
    yield head
    await reported


async def upload(server: Server, body: AsyncIterator[bytes]) -> tuple[int, dict[str, Any]]:
    _, session = await server.login()
    headers = {"X-Service-Session-Token": session}
    async with server.http.put(f"{server.url}/bp/ai/upload", data=body, headers=headers) as response:
        return response.status, await response.json()


async def log_in(server: Server, body: AsyncIterator[bytes]) -> tuple[int, dict[str, Any]]:
    async with server.http.post(f"{server.url}/bp/user/login", data=body) as response:
        return response.status, await response.json()


@pytest.mark.parametrize(
    ("call", "head", "tail"), [(upload, PNG, b"end"), (log_in, b'{"device":{"id":"slow"}', b"}")]
)
async def test_steady_body_may_take_longer_than_the_longest_pause(
    server: Server, call: Callable[..., Awaitable[tuple[int, Any]]], head: bytes, tail: bytes
) -> None:
    await limits(server, input_idle_s=0.5)
    status, answer = await call(server, trickled(head, for_s=0.7, tail=tail))
    assert status == 200, answer


async def test_body_that_pauses_too_long_is_refused(server: Server) -> None:
    await limits(server, input_idle_s=0.3)
    ended = asyncio.Event()
    async with asyncio.timeout(20):
        status, answer = await log_in(server, stalled(b'{"device":', ended.wait()))
    ended.set()
    assert (status, answer["error"]["message"]) == (400, "invalid_parameter: body timed out")


async def test_body_that_never_ends_is_refused_however_steady(server: Server) -> None:
    await limits(server, input_idle_s=30, input_total_s=0.3)
    async with asyncio.timeout(20):
        status, answer = await log_in(server, trickled(b'{"device":', for_s=60))
    assert (status, answer["error"]["message"]) == (400, "invalid_parameter: body timed out")
