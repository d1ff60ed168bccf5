"""A client that sees the bytes of aiohttp's server."""

import asyncio
from collections.abc import Callable, Iterable

import pytest
from aiohttp import web

from tests.waiting import until

GET = b"GET / HTTP/1.1\r\nHost: parley\r\n\r\n"


class FakeTransport(asyncio.Transport):
    """A transport that the test controls."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = False
        self.closed = False
        self.sent = b""

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def write(self, data: bytes) -> None:
        self.sent += data

    def writelines(self, list_of_data: Iterable[bytes]) -> None:
        self.sent += b"".join(list_of_data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


async def reached(condition: Callable[[], object], otherwise: str) -> None:
    """Wait until `condition` is true. If it stays false, fail with the sentence `otherwise`."""
    try:
        await until(condition, within_s=5)
    except AssertionError:
        pytest.fail(otherwise)


async def answer(request: web.BaseRequest) -> web.Response:
    return web.Response(text="answer")
