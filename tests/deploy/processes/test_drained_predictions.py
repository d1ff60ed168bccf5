"""A process that ends answers the clients that wait for a prediction."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import ClientSession

from app.services import Services
from app.settings import Settings
from streams.tasks import background
from tests.app.predictions.hosts import LONG_MS, Studio
from tests.deploy.commands import Command, command
from tests.deploy.serving import server_env
from tests.running.servers import running_server
from tests.waiting import until
from vendors.sandbox.server import listening

DRAIN_S = 12
VERSION = "a" * 64


@pytest.fixture
async def studio(services: Services, listener: socket.socket) -> AsyncIterator[Studio]:
    """A server that stays. It is used to write configs and to read what the host was asked."""
    async with listening() as sandbox, running_server(services, listener) as server:
        opened = Studio(server, sandbox, *(await server.login()))
        await opened.set_up()
        yield opened


@dataclass
class Asking:
    """A client that waits for a prediction of another server."""

    studio: Studio
    url: str
    answer: tuple[int, dict[str, Any], str | None] | None = None

    async def predict(self, after_ms: int) -> None:
        body = {"strategy": "faces", "version": VERSION, "input": {"prompt": "Alice", "after_ms": after_ms}}
        headers = {"X-Service-Session-Token": self.studio.session}
        async with (
            ClientSession() as http,
            http.post(f"{self.url}/bp/ai/prediction", json=body, headers=headers) as response,
        ):
            self.answer = response.status, await response.json(), response.headers.get("Retry-After")


async def ended_while_asking(
    studio: Studio, process: Command, port: int, number: signal.Signals, *, after_ms: int
) -> tuple[int, dict[str, Any], str | None]:
    asking = Asking(studio, f"http://127.0.0.1:{port}")
    async with background(asking.predict(after_ms)) as request:
        await until(lambda: studio.asked("predictions"))
        process.process.send_signal(number)
        async with asyncio.timeout(60):
            await request
    assert asking.answer is not None
    return asking.answer


@pytest.mark.parametrize(("after_ms", "status"), [(8000, 200), (LONG_MS, 503)])
async def test_prediction_of_a_stopped_server_ends_or_is_answered(
    studio: Studio, settings: Settings, unused_tcp_port: int, after_ms: int, status: int
) -> None:
    env = server_env(settings, PORT=str(unused_tcp_port), PARLEY_PROCESSES="1", PARLEY_DRAIN_TIMEOUT_S=str(DRAIN_S))
    async with command("app", "serve", **env) as process:
        await process.event("server.listening")
        got = await ended_while_asking(studio, process, unused_tcp_port, signal.SIGTERM, after_ms=after_ms)
        assert await process.end() == 0
    check(got, status=status)
    assert await studio.left() == (2 if status == 503 else 1)


def check(got: tuple[int, dict[str, Any], str | None], *, status: int) -> None:
    assert got[0] == status, got
    if status == 503:
        assert got[1]["error"]["error_type"] == "backend unavailable"
        assert got[1]["error"]["extra"] == {"retryable": True}
        assert got[2] is not None


@pytest.mark.parametrize(("after_ms", "status"), [(8000, 200), (LONG_MS, 503)])
async def test_prediction_of_a_replaced_process_ends_or_is_answered(
    studio: Studio, settings: Settings, unused_tcp_port: int, after_ms: int, status: int
) -> None:
    env = server_env(settings, PORT=str(unused_tcp_port), PARLEY_DRAIN_TIMEOUT_S=str(DRAIN_S))
    async with command("app", "serve", **env) as parent:
        for _ in range(2):
            await parent.event("process.ready")
        got = await ended_while_asking(studio, parent, unused_tcp_port, signal.SIGHUP, after_ms=after_ms)
    check(got, status=status)
