"""The client of the kills: a request whose connection is cut is repeated with another token."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest

from bench.kills.client import Client, Observations, open_http

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class Patient(random.Random):
    """Chance, as a user has it who never gives up."""

    def random(self) -> float:
        return 1.0


@asynccontextmanager
async def killed_once() -> AsyncIterator[tuple[str, list[str]]]:
    """A server that cuts the first connection once it has read the request, and the tokens that it was sent."""
    tokens: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        tokens.append(next(line for line in head.splitlines() if line.startswith("X-Token: ")))
        if len(tokens) > 1:
            writer.write(ANSWER)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", tokens


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_repeat_has_another_token(method: str) -> None:
    numbers, observations = count(1), Observations()
    async with killed_once() as (url, tokens), open_http() as http:
        client = Client(http, url, observations, Patient())
        answer = await client.ask("read", method, "/", headers=lambda: {"X-Token": f"{next(numbers)}"})

    assert answer == {}
    assert tokens == ["X-Token: 1", "X-Token: 2"]
    assert (observations.cut, observations.repeated) == (1, 1)
